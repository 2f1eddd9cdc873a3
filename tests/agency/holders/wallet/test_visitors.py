"""Visitors of a link make a wallet, where the organization lets them."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from agency.holders.wallet import visitors
from agency.holders.wallet.models import PersonalLink
from connections.models import Connection
from tenants.models import AuditEntry
from tests.agency.holders.wallet.conftest import (
    PIN,
    VALUES,
    link_of,
    opens_wallet,
    refuses,
)
from tests.support.people import ApiError, Holder
from tests.support.policies import attribute, policy
from tests.support.races import at_once
from tests.support.steps import step
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
BUTTON = "/w/new/"


@step
def link(faber, degree):
    """The token of an offer of an organization that lets visitors make wallets."""
    faber.tenant.visitor_wallets = True
    faber.tenant.save()
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    made = faber.post("/credentials", body | {"automaticIssuance": True})
    return made["offerUrl"].rpartition("/i/")[2]


@step
def poster(faber, link):
    """The token of an invitation that many may use."""
    invited = faber.post("/connections", {"multiParty": True})["invitationUrl"]
    return invited.partition("/i/")[2].partition("?")[0]


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


def test_a_wallet_that_no_visitor_opens_is_removed_after_a_day(poster, faber, alice):
    link_of(alice)  # made by the organization: it waits longer for its holder
    visitor().post(f"/w/new/{poster}")
    connected = Wallet.hosted_by(faber.tenant).latest("pk")
    Holder(faber, connected.wallet_id).meets(faber)
    visitor().post(f"/w/new/{poster}")
    browser = new_wallet(poster)
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


def test_a_crowd_at_a_counter_makes_a_wallet_for_each_offer(faber, link, degree):
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    for _ in range(50):
        offer = faber.post("/credentials", body)["offerUrl"].rpartition("/i/")[2]
        assert visitor().post(f"/w/new/{offer}").status_code == 302
    assert Wallet.hosted_by(faber.tenant).count() == 50


def test_a_link_for_one_makes_one_wallet(faber, link):
    first, second, third = visitor(), visitor(), visitor()
    first.post(f"/w/new/{link}")
    [made] = Wallet.hosted_by(faber.tenant)
    # A browser was left before the PIN, or it was that of an app: another one goes on.
    assert second.post(f"/w/new/{link}").url == f"/w/pin?take={link}"
    refuses(first.post("/w/pin", {"pin": PIN}), 404, "wallet_link_gone")
    assert first.post(f"/w/new/{link}").status_code == 302
    refuses(second.post("/w/pin", {"pin": PIN}), 404, "wallet_link_gone")
    assert first.post("/w/pin", {"pin": PIN}).url == "/w/"
    refused = third.post(f"/w/new/{link}")
    refuses(refused, 409, "wallet_made")
    assert "in the browser in which it was made" in refused.text
    assert list(Wallet.hosted_by(faber.tenant)) == [made]
    # Also after the organization gave its holder a new link.
    link_of(Holder(faber, made.wallet_id))
    opens_wallet(faber, link_of(Holder(faber, made.wallet_id)))
    refuses(visitor().post(f"/w/new/{link}"), 409, "wallet_made")
    faber.delete(f"/api/wallets/{made.wallet_id}")
    assert visitor().post(f"/w/new/{link}").status_code == 302, "it was deleted"


def test_who_begins_again_and_again_is_slowed_and_no_other(faber, link, degree):
    codes = [visitor().post(f"/w/new/{link}").status_code for _ in range(13)]
    assert codes == [302] * 11 + [429] * 2
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    offer = faber.post("/credentials", body)["offerUrl"].rpartition("/i/")[2]
    assert visitor().post(f"/w/new/{offer}").status_code == 302
    made = AuditEntry.objects.filter(action="wallet.link_created")
    assert made.count() == 12


def test_an_invitation_for_one_makes_one_wallet_too(faber, link):
    invited = faber.post("/connections")["invitationUrl"].partition("/i/")[2]
    token = invited.partition("?")[0]
    new_wallet(token)
    refuses(visitor().post(f"/w/new/{token}"), 409, "wallet_made")


def test_of_browsers_at_once_one_has_the_wallet(faber, link):
    browsers = [visitor() for _ in range(4)]
    answers = at_once(
        *[partial(browser.post, f"/w/new/{link}") for browser in browsers]
    )
    assert [answer.status_code for answer in answers] == [302] * 4
    assert Wallet.hosted_by(faber.tenant).count() == 1
    pins = at_once(
        *[partial(browser.post, "/w/pin", {"pin": PIN}) for browser in browsers]
    )
    assert sorted(answer.status_code for answer in pins) == [302, 404, 404, 404]


def test_a_pin_that_is_chosen_meanwhile_keeps_the_wallet(faber, link):
    """Of who chooses the PIN and who begins again, one wins, and nothing is lost."""
    for _ in range(3):
        PersonalLink.objects.all().delete()
        first, second = visitor(), visitor()
        first.post(f"/w/new/{link}")
        chosen, again = at_once(
            partial(first.post, "/w/pin", {"pin": PIN}),
            partial(second.post, f"/w/new/{link}"),
        )
        codes = (chosen.status_code, again.status_code)
        assert codes in [(302, 409), (404, 302)]
        assert (first.get("/w/").status_code == 200) is (codes[0] == 302)


def test_a_link_for_many_makes_as_many_a_day_as_the_organization_says(
    faber, poster, link
):
    faber.tenant.visitor_wallets_a_day = 4
    faber.tenant.save()
    for _ in range(4):
        assert visitor().post(f"/w/new/{poster}").status_code == 302
    refused = Client(REMOTE_ADDR="192.0.2.7").post(f"/w/new/{poster}")
    refuses(refused, 429, "too_many_requests")
    assert 6 * 3600 - 60 < int(refused["Retry-After"]) <= 6 * 3600
    assert visitor().post(f"/w/new/{link}").status_code == 302, "offers are not counted"
    invited = faber.post("/connections", {"multiParty": True})["invitationUrl"]
    other = invited.partition("/i/")[2].partition("?")[0]
    assert visitor().post(f"/w/new/{other}").status_code == 302


def test_a_full_quota_makes_no_wallet(poster, faber, settings):
    settings.QUOTA_WALLETS = 1
    faber.tenant.provider.has_quotas = True
    faber.tenant.provider.save()
    visitor().post(f"/w/new/{poster}")
    refuses(visitor().post(f"/w/new/{poster}"), 409, "quota_exceeded")


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
    made = provider.makes(visitorWallets=True, visitorWalletsPerDay=7)
    office = provider.opens(made)
    assert (made["visitorWallets"], made["visitorWalletsPerDay"]) == (True, 7)
    invited = office.post("/connections")["invitationUrl"]
    page = invited.partition("/i/")[2]
    assert BUTTON in visitor().get(f"/i/{page}").text
    path = f"/tenants/{made['tenantId']}"
    for wrong in (0, 100_001, "many"):
        with pytest.raises(ApiError, match="visitorWalletsPerDay"):
            provider.put(path, {"visitorWalletsPerDay": wrong})
    provider.put(path, {"visitorWallets": False})
    told = office.get("/tenants")[0]
    assert (told["visitorWallets"], told["visitorWalletsPerDay"]) == (False, 7)
    assert BUTTON not in visitor().get(f"/i/{page}").text
