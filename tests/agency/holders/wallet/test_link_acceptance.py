"""A link leads into the web wallet that this browser knows."""

import pytest
from django.test import Client
from django.utils import timezone

from agency.holders.wallet import sessions
from agency.holders.wallet.models import WalletSession
from connections.models import Connection
from credentials.models import Credential
from tests.agency.holders.wallet.conftest import (
    VALUES,
    link_of,
    newest_of,
    opens_wallet,
    refuses,
)
from tests.support.policies import attribute, policy

pytestmark = pytest.mark.django_db(transaction=True)
BUTTON = "/w/take/"


def token_of(url):
    return url.rpartition("/i/")[2].partition("?")[0]


@pytest.fixture
def offer(faber, degree):
    """The token of an offer by link."""

    def make(**body):
        body |= {"definitionId": degree["definitionId"], "credentialValues": VALUES}
        made = faber.post("/credentials", body | {"automaticIssuance": True})
        return token_of(made["offerUrl"])

    return make


@pytest.fixture
def ask(faber):
    """The token of a request by link."""

    def make():
        made = faber.post("/verifications/policy", policy(attribute("name")))
        return token_of(made["verificationRequestUrl"])

    return make


def test_only_who_has_opened_a_wallet_here_is_led_there(wallet, acme, offer):
    token = offer()
    led = wallet.get(f"/i/{token}")
    assert (led.status_code, led.url) == (302, f"/w/take/{token}")
    assert led["Referrer-Policy"] == "no-referrer" and "Cookie" in led["Vary"]
    others = [Client(headers={"Accept": "text/html"}), opens_wallet(acme.hosts("Bob"))]
    for browser in others:
        assert_led_nowhere(browser, token)
    # After a rest too: the wallet then asks for the PIN.
    WalletSession.objects.update(used_at=timezone.now() - sessions.REST)
    assert wallet.get(f"/i/{token}").url == f"/w/take/{token}"
    asked = wallet.get(f"/w/take/{token}").url
    assert asked == f"/w/pin?take={token}"
    assert f"/i/{token}?wallet=other" in wallet.get(asked).text
    wallet.post("/w/leave")
    assert_led_nowhere(wallet, token)


def assert_led_nowhere(browser, token):
    page = browser.get(f"/i/{token}")
    assert page.status_code == 200 and BUTTON not in page.text


def test_another_wallet_can_be_used_instead(wallet, offer):
    token = offer()
    other = f"/i/{token}?wallet=other"
    assert other in wallet.get(f"/w/take/{token}").text
    page = wallet.get(other).text
    assert "by-wallet" in page and f"/w/take/{token}" in page
    # Without scripts, it is looked at again in the same way.
    assert f"/i/{token}?wallet=other&amp;seen=waiting" in page


def test_wallet_apps_get_the_message_also_where_a_wallet_is_known(wallet, offer):
    path = f"/i/{offer()}"
    for accept in ("application/json", "*/*"):
        headers = {"Accept": accept}
        first = wallet.get(path, headers=headers)
        second = Client().get(path, headers=headers)
        assert first.status_code == second.status_code in (200, 302), accept
        assert first.content == second.content, accept
        assert first.headers.get("Location") == second.headers.get("Location"), accept


def test_looking_uses_nothing_up_nor_does_a_head(wallet, offer, alice):
    path = f"/i/{offer()}"
    assert wallet.head(path).status_code == 200
    assert wallet.get(path, follow=True).status_code == 200
    assert Connection.objects.filter(opened_at=None).count() == 1
    assert alice.get("/credentials") == []


def test_who_is_led_to_a_wallet_that_is_forgotten_comes_back(wallet, offer):
    path = f"/i/{offer()}"
    del wallet.cookies[sessions.LINK_COOKIE]
    del wallet.cookies[sessions.SESSION_COOKIE]
    back = wallet.get(path, follow=True)
    assert back.redirect_chain[-1] == (f"{path}?wallet=other", 302)
    assert back.status_code == 200 and "by-wallet" in back.text


def test_a_replaced_link_and_a_made_up_note_lead_nowhere(wallet, alice, offer):
    token, note = offer(), wallet.cookies[sessions.OPEN_COOKIE].value
    for made_up in ("x", "", "00", "agw_1"):
        wallet.cookies[sessions.OPEN_COOKIE] = made_up
        assert_led_nowhere(wallet, token)
    wallet.cookies[sessions.OPEN_COOKIE] = note
    assert wallet.get(f"/i/{token}").url == f"/w/take/{token}"
    link_of(alice)
    assert_led_nowhere(wallet, token)


def test_an_invitation_for_many_connects_a_wallet_once(wallet, faber):
    invited = faber.invites(multiParty=True)
    token = Connection.objects.get(connection_id=invited["connectionId"]).token
    before = Connection.objects.count()
    for _ in range(3):
        done = wallet.post(f"/w/take/{token}", {"action": "accept"})
        assert done.url == "/w/inbox?connected"
    assert Connection.objects.count() == before + 2


def test_the_note_opens_no_wallet(wallet):
    note = wallet.cookies[sessions.OPEN_COOKIE]
    assert note["path"] == "/i/" and note["httponly"]
    thief = Client()
    thief.cookies[sessions.SESSION_COOKIE] = note.value
    assert thief.get("/w/").url == "/w/pin"


def test_an_offer_is_shown_and_taken(wallet, offer, alice):
    path = f"/w/take/{offer()}"
    shown = wallet.get(path).text
    assert "Balthazar-4711" in shown and alice.get("/credentials") == []
    assert 'value="decline"' not in shown
    answer = wallet.post(path)
    assert answer.url == f"/w/offers/{newest_of(alice, Credential).pk}"
    assert "The card is in your wallet." in wallet.get(answer.url).text
    # Sent again, it leads to the page of the link, which says what became of it.
    assert wallet.post(path).url == path.replace("/w/take/", "/i/")
    assert len(alice.get("/credentials")) == 1


def test_a_request_is_answered_with_consent(wallet, offer, ask, faber, alice):
    wallet.post(f"/w/take/{offer()}")
    path = f"/w/take/{ask()}"
    shown = wallet.get(path).text
    assert "Balthazar-4711" in shown and "Nothing is shown" in shown
    assert alice.get("/verifications") == []
    refuses(wallet.post(path), 400, "choice_missing")
    answer = wallet.post(path, {"card-0": newest_of(alice, Credential).pk})
    assert "was sent and accepted" in wallet.get(answer.url).text
    assert faber.get("/verifications")[0]["isValid"] is True
    assert f"<bdi>{faber.tenant.name}</bdi>" in wallet.get("/w/history").text


def test_without_a_card_a_request_cannot_be_answered(wallet, ask):
    shown = wallet.get(f"/w/take/{ask()}").text
    assert "No card in your wallet answers this." in shown
    assert 'value="accept"' not in shown
    assert "Tell them that no card fits" in shown
    assert shown.count('value="decline"') == 1
    assert 'name="reason" value="no_card_fits"' in shown


def test_a_request_by_link_is_declined_with_a_reason(wallet, offer, ask, faber):
    wallet.post(f"/w/take/{offer()}")
    token = ask()
    path = f"/w/take/{token}"
    shown = wallet.get(path).text
    assert 'value="decline"' in shown
    assert shown.count("Not now") == 1, "a reason, which the other side is told"
    form = {"action": "decline", "reason": "My card has ended."}
    declined = wallet.post(path, form)
    said = "You declined this question. Nothing was shown."
    assert said in wallet.get(declined.url).text
    assert said in wallet.get("/w/history").text
    [asked] = faber.get("/verifications")
    assert asked["state"] == "Rejected" and "isValid" not in asked
    assert asked["reason"] == "My card has ended."
    assert wallet.post(path, form).url == f"/i/{token}", "the link is used up"
    assert len(faber.get("/verifications")) == 1


def test_an_invitation_is_accepted(wallet, faber, alice):
    made = faber.invites()
    path = f"/w/take/{token_of(made['invitationUrl'])}"
    assert "Connect" in wallet.get(path).text
    inbox = wallet.post(path).url
    assert "Your wallet is connected with <bdi>" in wallet.get(inbox).text
    assert "is connected with" not in wallet.get("/w/inbox").text
    assert alice.newest("connections")["state"] == "Connected"


def test_an_offer_that_connects_first_is_in_the_inbox(wallet, offer):
    connecting = {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    path = f"/w/take/{offer(**connecting)}"
    assert "connects first" in wallet.get(path).text
    assert wallet.post(path).url == "/w/inbox"
    assert "Degree" in wallet.get("/w/inbox").text


def test_a_link_that_has_ended_is_taken_by_nobody(wallet, offer, faber, settings):
    token = offer()
    faber.hosts("Bob").put_form(
        "/credentials/fromData", credentialData=f"{settings.PUBLIC_URL}/i/{token}"
    )
    assert wallet.post(f"/w/take/{token}").url == f"/i/{token}"
    late = offer()
    Connection.objects.filter(token=late).update(expires_at=timezone.now())
    assert wallet.get(f"/w/take/{late}").url == f"/i/{late}"


def test_links_of_others_and_made_up_ones_are_not_found(wallet, acme, alice):
    made = acme.invites()
    for token in (token_of(made["invitationUrl"]), "made-up"):
        assert wallet.get(f"/w/take/{token}").status_code == 404
        assert wallet.post(f"/w/take/{token}").status_code == 404
    assert alice.get("/connections") == []
