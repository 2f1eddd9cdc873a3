"""Visitors of a link make a wallet, where the organization lets them."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agency.web_wallet import visitors
from agency.web_wallet.models import PersonalLink
from connections.models import Connection
from tenants.models import AuditEntry
from tests.agency.web_wallet.conftest import PIN, VALUES, link_of, refuses
from tests.support.people import Holder
from tests.support.policies import attribute, policy
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
BUTTON = "/w/new/"


@pytest.fixture
def link(faber, degree):
    """The token of an offer of an organization that lets visitors make wallets."""
    faber.tenant.visitor_wallets = True
    faber.tenant.save()
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    made = faber.post("/credentials", body | {"automaticIssuance": True})
    return made["offerUrl"].rpartition("/i/")[2]


def visitor():
    return Client(headers={"Accept": "text/html", "Accept-Language": "en"})


def new_wallet(link):
    """The browser of a visitor who has made a wallet and chosen its PIN."""
    browser = visitor()
    browser.post(f"/w/new/{link}")
    browser.post("/w/pin", {"pin": PIN})
    return browser


def test_a_visitor_makes_a_wallet_accepts_and_keeps_its_link(link):
    browser = visitor()
    assert BUTTON in browser.get(f"/i/{link}").text
    answer = browser.post(f"/w/new/{link}")
    assert answer.url == f"/w/pin?take={link}"
    assert link in browser.get(answer.url).text
    answer = browser.post("/w/pin", {"pin": PIN, "take": link})
    assert answer.url == f"/w/take/{link}"
    del browser.cookies["agency_wallet"]  # as after a rest
    assert browser.get(answer.url).url == f"/w/pin?take={link}"
    again = browser.post("/w/pin", {"pin": PIN, "take": link})
    assert again.url == answer.url
    assert "Balthazar-4711" in browser.get(answer.url).text
    stored = browser.get(browser.post(answer.url).url).text
    assert "The card is in your wallet." in stored
    assert "only this browser knows" in stored and 'class="button wide"' not in stored
    [own] = set(re.findall(r"/w/agw_\w+", browser.get("/w/keep").text))
    assert "Balthazar-4711" in browser.get("/w/").text
    again = visitor()
    again.get(own)
    assert again.post("/w/pin", {"pin": PIN}).url == "/w/"
    assert "Balthazar-4711" in again.get("/w/").text
    [entry] = AuditEntry.objects.filter(action="wallet.created")
    assert (entry.actor_kind, entry.origin) == ("system", "127.0.0.1")


def test_a_wallet_that_no_visitor_opens_is_removed_after_a_day(link, faber, alice):
    link_of(alice)  # made by the organization: it waits longer for its holder
    visitor().post(f"/w/new/{link}")
    connected = Wallet.hosted_by(faber.tenant).latest("pk")
    Holder(faber, connected.wallet_id).meets(faber)
    visitor().post(f"/w/new/{link}")
    browser = new_wallet(link)
    assert visitors.remove_unopened() == 0
    yesterday = timezone.now() - timedelta(hours=25)
    PersonalLink.objects.update(created_at=yesterday)
    assert Wallet.hosted_by(faber.tenant).count() == 4
    assert (visitors.remove_unopened(), visitors.remove_unopened()) == (1, 0)
    assert Wallet.hosted_by(faber.tenant).count() == 3
    assert Wallet.hosted_by(faber.tenant).filter(pk=connected.pk).exists()
    assert browser.get("/w/").status_code == 200


def test_nobody_makes_a_wallet_unless_the_organization_lets_them(link, faber):
    faber.tenant.visitor_wallets = False
    faber.tenant.save()
    assert BUTTON not in visitor().get(f"/i/{link}").text
    assert visitor().post(f"/w/new/{link}").status_code == 404
    assert not Wallet.objects.filter(is_organization=False).exists()


def test_a_link_that_is_over_used_or_made_up_makes_no_wallet(link, faber, settings):
    rows, past = Connection.objects.filter(token=link), timezone.now()
    rows.update(expires_at=past, expiry_due_at=past)
    assert visitor().post(f"/w/new/{link}").status_code == 404
    rows.update(expires_at=None, expiry_due_at=None)
    faber.hosts("Bob").put_form(
        "/credentials/fromData", credentialData=f"{settings.PUBLIC_URL}/i/{link}"
    )
    assert BUTTON not in visitor().get(f"/i/{link}").text
    for token in (link, "made-up"):
        assert visitor().post(f"/w/new/{token}").status_code == 404
    assert Wallet.objects.filter(is_organization=False).count() == 1


def test_visitors_are_bounded_by_address_and_organization(link, monkeypatch):
    for _ in range(visitors.OF_ADDRESS):
        assert visitor().post(f"/w/new/{link}").status_code == 302
    refused = visitor().post(f"/w/new/{link}")
    refuses(refused, 429, "too_many_requests")
    assert int(refused["Retry-After"]) > 0
    monkeypatch.setattr(visitors, "OF_ORGANIZATION", 2)
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    answers = {elsewhere.post(f"/w/new/{link}").status_code for _ in range(3)}
    assert 429 in answers


def test_a_full_quota_makes_no_wallet(link, faber, settings):
    settings.QUOTA_WALLETS = 1
    faber.tenant.provider.has_quotas = True
    faber.tenant.provider.save()
    visitor().post(f"/w/new/{link}")
    refuses(visitor().post(f"/w/new/{link}"), 409, "quota_exceeded")


def test_the_pages_ask_to_keep_the_link_until_it_is_kept(link, wallet):
    browser = new_wallet(link)
    asks = "only this browser knows"
    assert asks not in browser.get("/w/").text  # there is nothing to come back to
    browser.post(f"/w/take/{link}")
    assert asks in browser.get("/w/").text
    assert "have not kept the link" in browser.get("/w/leave").text
    assert browser.post("/w/keep").url == "/w/"
    assert asks not in browser.get("/w/").text
    # Who was given a personal link has it elsewhere, and is shown it alone.
    assert re.search(r"/w/agw_\w+", wallet.get("/w/keep").text)
    assert visitor().get("/w/keep").url == "/w/pin"
    assert "have not kept the link" not in wallet.get("/w/leave").text


def test_no_wallet_takes_the_place_of_one_whose_link_is_not_kept(link, alice):
    browser, path = new_wallet(link), link_of(alice)
    for refused in (browser.post(f"/w/new/{link}"), browser.get(path)):
        refuses(refused, 409, "wallet_not_kept")
        assert 'href="/w/"' in refused.text
    assert Wallet.objects.filter(is_organization=False).count() == 2
    own = "/w/" + browser.cookies["agency_wallet_link"].value
    assert browser.get(own).status_code == 302
    browser.post("/w/keep")
    assert browser.get(path).status_code == 302


def test_a_request_makes_no_wallet_as_an_empty_one_could_not_answer(link, faber):
    body = policy(attribute("a"))
    asked = faber.post("/verifications/policy", body)["verificationRequestUrl"]
    token = asked.partition("/i/")[2].partition("?")[0]
    page = visitor().get(f"/i/{token}").text
    assert "My card is in the browser" in page and "/w/new/" not in page
    assert visitor().post(f"/w/new/{token}").status_code == 404


def test_a_provider_account_lets_visitors_make_wallets(provider):
    made = provider.makes(visitorWallets=True)
    office = provider.opens(made)
    assert made["visitorWallets"] is True
    invited = office.post("/connections")["invitationUrl"]
    page = invited.partition("/i/")[2]
    assert BUTTON in visitor().get(f"/i/{page}").text
    provider.put(f"/tenants/{made['tenantId']}", {"visitorWallets": False})
    assert office.get("/tenants")[0]["visitorWallets"] is False
    assert BUTTON not in visitor().get(f"/i/{page}").text
