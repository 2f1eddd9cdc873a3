"""*Show my card*: a verifier scans a code, and its question waits in the wallet."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from agency.holders.wallet import links, shown_cards, tasks
from agency.holders.wallet.models import PersonalLink, ShownCard
from core.errors import Conflict
from core.work import network_reads
from credentials.models import Credential
from tenants import audit, tokens
from tenants.models import Tenant
from tests.agency.holders.wallet.conftest import (
    VALUES,
    newest_of,
    opens_wallet,
    wallet_of,
)
from tests.agency.studio.conftest import browser_with
from tests.support.policies import attribute, policy
from tests.support.races import at_once
from tests.support.steps import step
from verifications import kiosks
from verifications.models import Verification, VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = "This is no code of a card"
WAITS = "The question waits in the wallet"


def show(holder):
    """The address that the code of a wallet holds."""
    link = PersonalLink.objects.get(wallet=wallet_of(holder))
    return shown_cards.show_card(link)[1]


def makes_policy(organization, *restrictions):
    only = {"restrictions": list(restrictions)} if restrictions else {}
    body = policy(attribute("name", policyName="Who", **only), name="Degree check")
    made = organization.post("/verificationPolicies", body)["policyId"]
    return VerificationPolicy.objects.get(pk=made)


def scans(browser, asked, code):
    """Scan a code beside a policy in the studio."""
    page = f"/studio/organizations/{asked.tenant_id}/policies/{asked.pk}/scan"
    return browser.send(page, card=code)


def make_older(seconds):
    for card in ShownCard.objects.all():
        card.created_at -= timedelta(seconds=seconds)
        card.save()


@pytest.fixture
def clerk(faber):
    """Works for Faber in the studio."""
    return browser_with("operator", faber.tenant)


@step
def asked(faber):
    return makes_policy(faber)


def test_the_question_waits_in_the_wallet_and_is_answered_there(
    wallet, card, alice, clerk, asked
):
    page = wallet.post("/w/show").text
    assert "data:image/svg+xml;base64," in page and "data-counts" in page
    part = re.search(r'hx-get="(/w/show/[^"]+)"', page)[1]
    assert wallet.get(part).status_code == 204
    answer = scans(clerk, asked, show_again(wallet, alice))
    assert answer.status_code == 302
    assert WAITS in clerk.get(answer.url).text
    assert not Verification.objects.filter(role="prover").exists()
    shown = ShownCard.objects.get()
    led = wallet.get(f"/w/show/{shown.pk}")
    to = f"/w/take/{shown.request_token}"
    assert (led.status_code, led["HX-Redirect"]) == (204, to)
    assert to in wallet.get("/w/inbox").text
    assert VALUES["name"] in wallet.get(to).text
    chosen = str(newest_of(alice, Credential).pk)
    wallet.post(to, {"action": "accept", "card-0": chosen})
    assert Verification.objects.get(role="verifier").is_valid
    assert to not in wallet.get("/w/inbox").text


def show_again(browser, holder):
    """Show another code: the one before ends, and the page offers nothing of it."""
    former = ShownCard.objects.get()
    code = show(holder)
    assert browser.get(f"/w/show/{former.pk}").status_code == 404
    return code


def test_who_has_signed_in_is_led_to_what_waits(wallet, alice, clerk, asked):
    scans(clerk, asked, show(alice))
    wallet.cookies.pop("agency_wallet")
    assert wallet.post("/w/pin", {"pin": "284615"}).url == "/w/inbox"


def test_nothing_is_made_by_looking_and_the_token_is_not_stored(wallet, alice):
    assert wallet.get("/w/show").status_code == 200
    assert not ShownCard.objects.exists()
    token = show(alice).rpartition("/")[2]
    [card] = ShownCard.objects.all()
    assert bytes(card.digest) == tokens.digest_of(token)
    assert token not in repr(card.__dict__)


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "ar"])
def test_strangers_learn_neither_wallet_nor_organization(wallet, alice, language):
    """Every token has the same page, also one that nobody has."""
    headers = {"Accept": "text/html", "Accept-Language": language}
    stranger = Client(headers=headers)
    path = show(alice).removeprefix("http://testserver")
    page = stranger.get(path)
    assert page.status_code == 200 and page["Content-Language"] == language
    assert page["Referrer-Policy"] == "no-referrer"
    unknown = tokens.generate_token(shown_cards.PREFIX)
    assert stranger.get(f"/card/{unknown}").content == page.content
    assert "Alice" not in page.text and "Faber" not in page.text
    assert ("checks cards" in page.text) == (language == "en")
    assert ShownCard.objects.get().taken_at is None


def test_a_code_is_for_one_scan(wallet, alice, clerk, asked):
    code = show(alice)
    assert scans(clerk, asked, code).status_code == 302
    again = scans(clerk, asked, code)
    assert again.status_code == 200 and REFUSED in again.text
    assert Verification.objects.count() == 1


def test_a_code_is_for_a_minute(wallet, alice, clerk, asked):
    code = show(alice)
    make_older(60)
    assert REFUSED in scans(clerk, asked, code).text
    [card] = ShownCard.objects.all()
    page = wallet.get(f"/w/show/{card.pk}")
    assert "The time of this code is over." in page.text
    assert not Verification.objects.exists()


def test_what_is_no_code_is_refused_in_the_same_words(wallet, alice, clerk, asked):
    other = tokens.generate_token(shown_cards.PREFIX)
    for wrong in ("x", "x" * 200, f"http://testserver/card/{other}"):
        assert REFUSED in scans(clerk, asked, wrong).text
    code = show(alice)
    Tenant.objects.update(frozen_at=timezone.now())
    with pytest.raises(Conflict, match=REFUSED):
        shown_cards.find_shown(code, asked.tenant)
    Tenant.objects.update(frozen_at=None)
    wallet_of(alice).remove()
    assert REFUSED in scans(clerk, asked, code).text
    assert not Verification.objects.exists()


def test_a_new_personal_link_ends_the_code(wallet, alice, clerk, asked):
    code = show(alice)
    links.create_link(wallet_of(alice), by=audit.SYSTEM)
    assert not ShownCard.objects.exists()
    assert REFUSED in scans(clerk, asked, code).text


def test_of_two_scanners_at_once_one_asks(wallet, alice, faber, asked):
    code = show(alice)
    shown = shown_cards.find_shown(code, faber.tenant)
    ask = partial(
        network_reads.retry_transaction, shown_cards.ask_function(shown, asked)
    )
    answers = at_once(ask, ask)
    [lost] = [one for one in answers if isinstance(one, Conflict)]
    assert lost.code == "card_not_takeable"
    [request] = Verification.objects.all()
    assert ShownCard.objects.get().request_token == request.connection.token


def test_who_has_no_wallet_session_and_who_may_not_ask_cannot(alice, faber, asked):
    opens_wallet(alice)
    code = show(alice)
    assert Client().post("/w/show").status_code == 302
    viewer = browser_with("viewer", faber.tenant)
    assert scans(viewer, asked, code).status_code == 403
    assert ShownCard.objects.get().taken_at is None


def test_showing_and_scanning_too_often_is_refused(wallet, alice, faber, monkeypatch):
    monkeypatch.setattr(shown_cards, "A_MINUTE", 2)
    assert [wallet.post("/w/show").status_code for _ in range(3)] == [200, 200, 429]
    monkeypatch.setattr(shown_cards, "SCANS_A_MINUTE", 1)
    for code in ("card_not_takeable", "too_many_requests"):
        with pytest.raises(Exception) as refused:
            shown_cards.find_shown("x", faber.tenant)
        assert refused.value.code == code


def test_old_codes_are_forgotten(wallet, alice):
    show(alice)
    tasks.forget_ended_sessions()
    assert ShownCard.objects.exists()
    make_older(shown_cards.WAITS.total_seconds())
    tasks.forget_ended_sessions()
    assert not ShownCard.objects.exists()


def test_another_organization_asks_by_openid(wallet, alice, acme, faber):
    """It learns nothing of the wallet, and the holder reads who stands behind it."""
    definition = acme.defines("name", formats=["dc+sd-jwt"])
    only = {"credentialDefinitionId": definition["definitionId"]}
    asked = makes_policy(acme, only)
    clerk = browser_with("operator", acme.tenant)
    led = scans(clerk, asked, show(alice))
    page = clerk.get(led.url).text
    assert WAITS in page and "Alice" not in page and "Faber" not in page
    [card] = ShownCard.objects.all()
    request = Verification.objects.get()
    assert request.connection.wallet_link and card.tenant == faber.tenant
    shown = wallet.get(f"/w/take/{card.request_token}").text
    assert "Acme" in shown and "Nobody whom" in shown
    wallet.post(f"/w/take/{card.request_token}", {"action": "decline"})
    request.refresh_from_db()
    assert request.state == "Rejected"


def test_another_organization_cannot_ask_by_didcomm(wallet, alice, acme):
    asked = makes_policy(acme)
    page = scans(browser_with("operator", acme.tenant), asked, show(alice))
    assert page.status_code == 200 and "alert" in page.text
    assert ShownCard.objects.get().taken_at is None
    assert not Verification.objects.exists()


def test_a_kiosk_hands_over_what_is_on_its_screen(wallet, alice, faber, asked):
    url = faber.post("/kiosks", {"name": "Desk", "policyId": str(asked.pk)})["url"]
    path = "/kiosk/" + url.rpartition("/")[2]
    desk = Client(enforce_csrf_checks=True, headers={"Accept-Language": "en"})
    code = show(alice)
    nothing = desk.post(f"{path}/card", {"card": code})
    assert nothing.status_code == 200 and "Now look" not in nothing.text
    assert "/card" in desk.get(path).text
    desk.post(f"{path}/screen")
    [request] = Verification.objects.all()
    said = desk.post(f"{path}/card", {"card": code})
    assert "Now look at your phone." in said.text and "Alice" not in said.text
    assert ShownCard.objects.get().request_token == request.connection.token
    assert REFUSED in desk.post(f"{path}/card", {"card": code}).text
    kiosks.revoke_kiosk(kiosks.Kiosk.objects.get())
    assert desk.post(f"{path}/card", {"card": code}).status_code == 404


def test_a_kiosk_of_another_organization_asks_by_openid_only(wallet, alice, acme):
    asked = makes_policy(acme)
    url = acme.post("/kiosks", {"name": "Desk", "policyId": str(asked.pk)})["url"]
    path = "/kiosk/" + url.rpartition("/")[2]
    desk = Client(headers={"Accept-Language": "en"})
    desk.post(f"{path}/screen")
    page = desk.post(f"{path}/card", {"card": show(alice)}).text
    assert "cannot answer here" in page
    assert ShownCard.objects.get().taken_at is None


def test_pages_that_scan_may_use_the_camera_and_no_others(wallet, faber, clerk, asked):
    url = faber.post("/kiosks", {"name": "Desk", "policyId": str(asked.pk)})["url"]
    studio = f"/studio/organizations/{faber.tenant.pk}/policies/{asked.pk}"
    scanning = [
        wallet.get("/w/add"),
        wallet.post("/w/add", {"link": "x"}),
        clerk.get(f"{studio}/scan"),
        Client().get("/kiosk/" + url.rpartition("/")[2]),
    ]
    for page in scanning:
        assert "camera=(self)" in page["Permissions-Policy"]
        assert "'wasm-unsafe-eval'" in page["Content-Security-Policy"]
        assert "zxing_reader" in page.text and "barcode-detector" in page.text
    for page in (wallet.get("/w/"), wallet.get("/w/show"), clerk.get(studio)):
        assert "camera=()" in page["Permissions-Policy"]
        assert "unsafe" not in page["Content-Security-Policy"]
