"""Whom a check is about: named by its proof, found among the organization's cards."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.core.management import call_command
from django.db import connection as database
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credentials import revocation
from credentials.models import Credential, NameDigests, NameKey
from credentials.name_filling import keep_name_search
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.models import AuditEntry, Tenant
from tests.agency.holders.links.conftest import answer, take_offer
from tests.agency.studio.conftest import browser_of, person, read
from tests.support.people import Organization
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import CheckDigests, Verification
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
ROSA = {"name": "Rosa Bauer", "born": "20200229"}
MASK = "••••••"


@step
def member(faber):
    return faber.defines(*ROSA, supportRevocation=True, recipientAttribute="name")


@step
def rosa(faber, member):
    """She has a card, and is too young for most."""
    rosa = faber.hosts("Rosa")
    rosa.receives(faber, member, ROSA)
    return rosa


@step
def row(faber, member, rosa):
    """A check by a link that Rosa has answered."""
    return asks_by_link(faber, rosa, member)


def only_of(card):
    return {"restrictions": [{"credentialDefinitionId": card["definitionId"]}]}


def adult(card):
    return predicate("born", "<=", "today-18y", policyName="Adult", **only_of(card))


def asks_by_link(api, holder, member, *items):
    """A check that the holder answers with what the wallet can."""
    who = attribute("name", **only_of(member))
    return answered(api, holder, items or [who], [] if items else [adult(member)])


def answered(api, holder, items, predicates):
    made = api.post("/verifications/policy", policy(*items, predicates=predicates))
    answer(holder, made["verificationRequestUrl"])
    return Verification.objects.get(pk=made["verificationId"])


def text(page):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def verdict(browser, url, row):
    page = read(browser, f"{url}/verifications/{row.pk}")
    return page.partition('id="verdict"')[2].partition("</section>")[0]


def test_a_list_names_whom_a_proof_names(browser, url, api, rosa, member, row):
    page = text(read(browser, f"{url}/verifications"))
    assert "Rosa Bauer by link, not proven" in page
    asks_by_link(api, rosa, member, attribute("name", **only_of(member)))
    assert "Rosa Bauer by link Policy Valid" in text(
        read(browser, f"{url}/verifications")
    )


def test_a_verdict_says_whose_card_the_organization_knows(browser, url, api, row):
    shown = verdict(browser, url, row)
    assert "Rosa Bauer" in text(shown) and "which is not proven" in text(shown)
    assert "that is 18 or older" in shown and "The person is younger" not in shown
    card = Credential.objects.get(role="issuer")
    person = f"{url}/connections/{card.connection_id}/person"
    assert person in shown and "again=" not in shown
    assert "does not meet this: \u2068born\u2069: on" in text(shown)
    assert "2020" not in shown.partition("What you know")[2].partition("</ul>")[0]


def test_a_verdict_says_when_the_card_of_the_person_ran_out(browser, url, api):
    """Not that of who has another one, which was not asked for."""
    names = ("name", "validUntil")
    member = api.defines(*names, recipientAttribute="name")
    api.defines("name", name="Guest card", recipientAttribute="name")
    ines = api.hosts("Ines")
    ines.receives(api, member, {"name": "Ines Koch", "validUntil": "20241231"})
    only = only_of(member)
    runs = predicate("validUntil", ">=", "today", policyName="Runs", **only)
    row = answered(api, ines, [attribute("name", **only)], [runs])
    shown = verdict(browser, url, row)
    assert "had run out, 31 Dec 2024 was its last day" in text(shown)
    card = Credential.objects.get(role="issuer")
    assert f"again={card.pk}" in shown and "no such card" not in shown


def test_a_verdict_says_that_the_person_was_never_issued_such_a_card(
    browser, viewer, url, api, rosa, member
):
    other = api.defines("name", name="Trainer card", recipientAttribute="name")
    api.asks(rosa, attributes=[attribute("name", **only_of(other))])
    rosa.auto_selects()
    row = Verification.objects.get(role="verifier")
    for one in (browser, viewer):
        shown = text(verdict(one, url, row))
        assert (
            "Over this connection they were never issued Trainer card by you" in shown
        )
        assert "or it was revoked" not in shown


def test_where_an_answer_names_nobody_the_cards_that_cannot_answer_are_a_click_away(
    browser, url, api, rosa, member
):
    row = answered(api, rosa, [], [adult(member)])
    shown = verdict(browser, url, row)
    assert "The answer names nobody." in shown and "Rosa" not in shown
    assert "The person is younger" in shown
    [revoked] = re.findall(r'href="([^"]*state=Revoked[^"]*)"', shown)
    assert "No credential matches" in read(browser, unescape(revoked))
    revocation.revoke(Credential.objects.get(role="issuer"))
    assert "Rosa Bauer" in read(browser, unescape(revoked))


def test_a_verdict_says_that_a_card_may_have_expired(browser, url, api):
    member = api.defines("name", "until", recipientAttribute="name")
    ines = api.hosts("Ines")
    ines.receives(api, member, {"name": "Ines Koch", "until": "20241231"})
    for day in ("today", "20250101"):
        runs = predicate("until", ">=", day, policyName="Runs", **only_of(member))
        row = answered(api, ines, [], [runs])
        shown = text(verdict(browser, url, row))
        assert ("The card has expired" in shown) == (day == "today"), shown
        assert ("does not meet this" in shown) == (day != "today")


def test_a_revoked_card_is_issued_again_with_its_values(browser, url, api, row):
    card = Credential.objects.get(role="issuer")
    page, address = (
        f"{url}/credentials/{card.pk}",
        f"{url}/credentials/new?again={card.pk}",
    )
    assert f'href="{address}">Issue again' in read(browser, page)
    revocation.revoke(card)
    assert f'href="{address}">Issue again' in read(browser, page)
    shown = verdict(browser, url, row)
    assert "was revoked" in text(shown)
    assert f'href="{address}">Issue again' in shown
    form = read(browser, address)
    assert 'value="Rosa Bauer"' in form and 'value="20200229"' in form
    entry = AuditEntry.objects.get(action="values.revealed")
    assert entry.object_id == str(card.pk) and "again" in entry.reason
    person = read(browser, f"{url}/connections/{card.connection_id}/person")
    assert f'href="{address}">Issue again' in person


def test_of_a_deleted_definition_another_one_is_chosen(browser, url, api, rosa, member):
    for name in ("Trainer card", "Guest card"):
        api.defines("name", name=name)
    api.delete(f"/definitions/credentials/{member['definitionId']}")
    card = Credential.objects.get(role="issuer")
    page = read(browser, f"{url}/credentials/new?again={card.pk}")
    assert "Trainer card" in page and "Guest card" in page and "Rosa" not in page
    assert f"&amp;like={card.pk}" in page
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_over_a_connection_the_verdict_names_that(browser, url, api, rosa, member):
    revocation.revoke(Credential.objects.get(role="issuer"))
    api.asks(rosa, attributes=[attribute("name", **only_of(member))])
    rosa.auto_selects()
    row = Verification.objects.get(role="verifier")
    shown = text(verdict(browser, url, row))
    assert "Rosa Bauer : " in shown and "was revoked" in shown
    assert "by the same name" not in shown


def test_who_may_not_see_names_sees_neither_name_nor_card(viewer, url, api, row):
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


def test_with_its_values_the_name_goes(browser, url, api, row):
    Verification.objects.filter(pk=row.pk).update(proof=None, presentation=None)
    assert "Rosa" not in read(browser, f"{url}/verifications")
    assert "Rosa" not in verdict(browser, url, row)


def found(browser, url, text, kind="verifications"):
    """What is found by a text: the ids of checks."""
    page = read(browser, f"{url}/{kind}?q={text}")
    known = map(str, Verification.objects.values_list("pk", flat=True))
    return {pk for pk in known if f"/verifications/{pk}" in page}


def test_a_check_by_a_link_is_found_by_whom_it_names(
    browser, viewer, url, api, rosa, member, row
):
    valid = only_of(member)
    rows = [row, asks_by_link(api, rosa, member, attribute("name", **valid))]
    assert [row.is_valid for row in rows] == [False, True]
    asks_by_link(api, rosa, member, attribute("born", **valid))
    both = {str(row.pk) for row in rows}
    for kind in ("verifications", "search"):
        assert found(browser, url, "bau", kind) == both
        assert found(browser, url, "ROSA bauer", kind) == both
        assert not found(browser, url, "auer", kind)
        assert not found(viewer, url, "bau", kind), "names could be guessed"
    assert found(browser, url, "rosa&state=Valid") == {str(rows[1].pk)}


def test_nobody_finds_checks_of_another_organization(browser, url, api, rosa, member):
    acme = Organization("Acme Corp", owner=person("sam"))
    theirs = acme.defines(*ROSA, supportRevocation=True, recipientAttribute="name")
    rosa.receives(acme, theirs, ROSA)
    row = asks_by_link(acme, rosa, theirs)
    sam = browser_of(acme.tenant.memberships.get().user)
    their_url = f"/studio/organizations/{acme.tenant.pk}"
    for kind in ("verifications", "search"):
        assert not found(browser, url, "rosa", kind)
        assert found(sam, their_url, "rosa", kind) == {str(row.pk)}
    # Even if the digests were the same, the organization is a condition.
    asks_by_link(api, rosa, member)
    ours = CheckDigests.objects.get(tenant=api.tenant)
    CheckDigests.objects.update(digests=ours.digests)
    assert found(browser, url, "rosa") == {str(ours.pk)}


def test_digests_of_checks_go_with_the_proof_and_with_the_check(
    browser, url, api, rosa, member, row
):
    api.delete(f"/verifications/{row.pk}")
    assert not CheckDigests.objects.exists()
    row = asks_by_link(api, rosa, member)
    assert found(browser, url, "rosa") == {str(row.pk)}
    Tenant.objects.update(values_kept_days=30)
    Verification.objects.update(updated_at=F("updated_at") - timedelta(days=40))
    delete_old_exchanges()
    assert not CheckDigests.objects.exists()
    assert not found(browser, url, "rosa")


def test_checks_of_before_are_filled_in_and_it_is_switched_off(
    browser, url, api, rosa, member, row
):
    CheckDigests.objects.all().delete()
    NameKey.objects.update(checks_filled_to=None, checks_filled_at=None)
    NameDigests.objects.all().delete()
    NameKey.objects.update(filled_at=timezone.now())
    keep_name_search()
    assert found(browser, url, "rosa") == {str(row.pk)}
    assert not NameDigests.objects.exists(), "these were filled in before"
    Tenant.objects.update(name_search=False)
    keep_name_search()
    assert not CheckDigests.objects.exists() and not found(browser, url, "rosa")
    asks_by_link(api, rosa, member)
    assert not CheckDigests.objects.exists()
    Tenant.objects.update(name_search=True)
    call_command("fill_name_search")
    assert len(found(browser, url, "rosa")) == 2


def test_another_attribute_that_names_finds_checks_by_that(
    browser, url, api, member, row
):
    keep_name_search()
    path = f"/definitions/credentials/{member['definitionId']}"
    api.call("patch", path, {"recipientAttribute": None})
    keep_name_search()
    assert not CheckDigests.objects.exists()
    api.call("patch", path, {"recipientAttribute": "name"})
    keep_name_search()
    assert found(browser, url, "rosa") == {str(row.pk)}


def test_another_organization_knows_nothing_of_a_card(browser, url, api, rosa, member):
    acme = Organization("Acme Corp")
    theirs = acme.defines(*ROSA, supportRevocation=True, recipientAttribute="name")
    rosa.receives(acme, theirs, ROSA)
    card = Credential.objects.get(role="issuer", tenant=acme.tenant)
    told = browser.get(f"{url}/credentials/new?again={card.pk}")
    assert told.status_code == 404 and "Rosa" not in told.text


def test_more_checks_take_no_more_queries(browser, url, api, rosa, member, row):
    read(browser, f"{url}/verifications")  # reads the key of names, once in a process
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
