"""Whom a check is about: named by its proof, found among the organization's cards."""

import re
from html import unescape

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from credentials import revocation
from credentials.models import Credential
from tenants.models import AuditEntry
from tests.agency.holders.links.conftest import answer, take_offer
from tests.agency.studio.conftest import read
from tests.support.people import Organization
from tests.support.policies import attribute, policy, predicate
from verifications.models import Verification
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
ROSA = {"name": "Rosa Bauer", "born": "20200229"}
MASK = "••••••"


@pytest.fixture
def member(api):
    return api.defines(*ROSA, supportRevocation=True, recipientAttribute="name")


@pytest.fixture
def rosa(api, member):
    """She has a card, and is too young for most."""
    rosa = api.hosts("Rosa")
    rosa.receives(api, member, ROSA)
    return rosa


def asks_by_link(api, holder, member, *items):
    """A check that the holder answers with what the wallet can."""
    only = {"restrictions": [{"credentialDefinitionId": member["definitionId"]}]}
    who = attribute("name", **only)
    adult = predicate("born", "<=", "today-18y", policyName="Adult", **only)
    asked = policy(*(items or [who]), predicates=[] if items else [adult])
    made = api.post("/verifications/policy", asked)
    answer(holder, made["verificationRequestUrl"])
    return Verification.objects.get(pk=made["verificationId"])


def text(page):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def verdict(browser, url, row):
    page = read(browser, f"{url}/verifications/{row.pk}")
    return page.partition('id="verdict"')[2].partition("</section>")[0]


def test_a_list_names_whom_a_proof_names(browser, url, api, rosa, member):
    asks_by_link(api, rosa, member)
    page = text(read(browser, f"{url}/verifications"))
    assert "Rosa Bauer by link, not proven" in page
    only = {"restrictions": [{"credentialDefinitionId": member["definitionId"]}]}
    asks_by_link(api, rosa, member, attribute("name", **only))
    assert "Rosa Bauer by link Policy Valid" in text(
        read(browser, f"{url}/verifications")
    )


def test_a_verdict_says_whose_card_the_organization_knows(
    browser, url, api, rosa, member
):
    shown = verdict(browser, url, asks_by_link(api, rosa, member))
    assert "Rosa Bauer" in text(shown) and "which is not proven" in text(shown)
    assert "that is 18 or older" in shown and "The person is younger" in shown
    card = Credential.objects.get(role="issuer")
    person = f"{url}/connections/{card.connection_id}/person"
    assert person in shown and "holds" in shown and "again=" not in shown


def test_a_revoked_card_is_issued_again_with_its_values(
    browser, url, api, rosa, member
):
    row = asks_by_link(api, rosa, member)
    card = Credential.objects.get(role="issuer")
    revocation.revoke(card)
    shown = verdict(browser, url, row)
    assert "was revoked" in text(shown)
    address = f"{url}/credentials/new?again={card.pk}"
    assert f'href="{address}">Issue again' in shown
    form = read(browser, address)
    assert 'value="Rosa Bauer"' in form and 'value="20200229"' in form
    entry = AuditEntry.objects.get(action="values.revealed")
    assert entry.object_id == str(card.pk) and "again" in entry.reason
    person = read(browser, f"{url}/connections/{card.connection_id}/person")
    assert f'href="{address}">Issue again' in person


def test_over_a_connection_the_verdict_names_that(browser, url, api, rosa, member):
    revocation.revoke(Credential.objects.get(role="issuer"))
    only = {"restrictions": [{"credentialDefinitionId": member["definitionId"]}]}
    api.asks(rosa, attributes=[attribute("name", **only)])
    rosa.auto_selects()
    row = Verification.objects.get(role="verifier")
    shown = text(verdict(browser, url, row))
    assert "Rosa Bauer : " in shown and "was revoked" in shown
    assert "by the same name" not in shown


def test_who_may_not_see_names_sees_neither_name_nor_card(
    viewer, url, api, rosa, member
):
    row = asks_by_link(api, rosa, member)
    for path in ("verifications", f"verifications/{row.pk}"):
        page = read(viewer, f"{url}/{path}")
        assert "Rosa" not in page and MASK in page
    assert "again=" not in page and "/person" not in verdict(viewer, url, row)
    card = Credential.objects.get(role="issuer")
    assert viewer.get(f"{url}/credentials/new?again={card.pk}").status_code == 403
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_nothing_names_whom_no_definition_of_the_organization_names(
    browser, url, api, rosa, member
):
    """A value that is called so on a card of anybody is no name of a person here."""
    asks_by_link(api, rosa, member, attribute("name"))
    assert "Rosa" not in read(browser, f"{url}/verifications")


def test_with_its_values_the_name_goes(browser, url, api, rosa, member):
    row = asks_by_link(api, rosa, member)
    Verification.objects.filter(pk=row.pk).update(proof=None, presentation=None)
    assert "Rosa" not in read(browser, f"{url}/verifications")
    assert "Rosa" not in verdict(browser, url, row)


def test_another_organization_knows_nothing_of_a_card(browser, url, api, rosa, member):
    acme = Organization("Acme Corp")
    theirs = acme.defines(*ROSA, supportRevocation=True, recipientAttribute="name")
    rosa.receives(acme, theirs, ROSA)
    card = Credential.objects.get(role="issuer", tenant=acme.tenant)
    told = browser.get(f"{url}/credentials/new?again={card.pk}")
    assert told.status_code == 404 and "Rosa" not in told.text


def test_more_checks_take_no_more_queries(browser, url, api, rosa, member):
    asks_by_link(api, rosa, member)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(database) as queries:
            read(browser, f"{url}/verifications")
        counts.append(len(queries))
        asks_by_link(api, rosa, member)
    assert counts[0] == counts[1]


def test_a_wallet_without_a_name_is_named_by_its_first_card(
    browser, viewer, url, api, rosa, member
):
    """As those are that visitors of a link have made."""
    Wallet.objects.filter(is_organization=False).update(owner_name="")
    wallet = Wallet.objects.get(is_organization=False)
    other = api.hosts("Otto")
    assert "Rosa Bauer by a card" in text(read(browser, f"{url}/wallets"))
    assert "<bdi>Rosa Bauer</bdi></h1>" in read(browser, f"{url}/wallets/{wallet.pk}")
    for found in ("wallets?q=bauer", "search?q=rosa+bauer"):
        shown = read(browser, f"{url}/{found}")
        assert wallet.wallet_id in shown and other.wallet_id not in shown
        shown = read(viewer, f"{url}/{found}")
        assert wallet.wallet_id not in shown
    masked = read(viewer, f"{url}/wallets")
    assert MASK in masked and "Rosa" not in masked


def test_the_page_of_whom_a_link_was_for_leads_to_the_wallet(browser, url, api, member):
    offer = {"definitionId": member["definitionId"], "credentialValues": ROSA}
    made = api.post("/credentials", {**offer, "automaticIssuance": True})
    card = Credential.objects.get(pk=made["credentialId"])
    person = f"{url}/credentials/{card.pk}/person"
    assert "Wallet here" not in read(browser, person)
    take_offer(api.hosts(""), made["offerUrl"])
    wallet = Wallet.objects.get(is_organization=False)
    page = read(browser, person)
    assert f"/wallets/{wallet.pk}" in page and "Wallet here" in page
