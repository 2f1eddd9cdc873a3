"""A person's page: what they hold, what waits, what happened, and what to do next."""

import json
import re
from html import unescape
from unittest.mock import patch

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from agency.holders.wallet.links import create_link
from agency.studio import person as pages
from connections.models import Connection
from credentials import revocation
from credentials.models import Credential
from tenants import audit
from tenants.models import Tenant
from tests.agency.holders.links.conftest import answer
from tests.agency.studio.conftest import browser_of, person, read
from tests.support.people import Organization
from tests.support.policies import attribute, policy
from tests.support.steps import step
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Zoë Example", "year": "2020"}
MASK = "••••••"
LARGE = (
    "connections_connection", "connections_basicmessage", "credentials_credential",
    "credentials_namedigests", "verifications_checkdigests",
    "verifications_verification", "wallets_wallet",
    "wallets_key",
)  # fmt: skip


@step
def definition(faber):
    return faber.defines(*VALUES, supportRevocation=True, recipientAttribute="name")


@step
def known(faber, met, definition):
    """Alice has a card, was asked, was offered another one, and has written."""
    met.receives(faber, definition, VALUES)
    faber.asks(met, attributes=[{"policyName": "name"}])
    met.auto_selects()
    faber.offers(met, definition, VALUES)
    to = met.known[faber]
    for who, where, text in (
        (faber, to[0], "Are you well?"),
        (met, to[1], "Yes, thank you."),
    ):
        who.post("/messages", {"connectionId": where, "text": text})
    return Connection.objects.get(connection_id=to[0], wallet__is_organization=True)


def by_link(api, definition, name="Zoë Example"):
    body = {"definitionId": definition["definitionId"]}
    body["credentialValues"] = VALUES | {"name": name}
    made = api.post("/credentials", body)
    return Credential.objects.get(pk=made["credentialId"]), made["offerUrl"]


def asks_name(api, card, *holders):
    """A check of the name on a card, by a link for each of them."""
    only = {"restrictions": [{"credentialDefinitionId": card["definitionId"]}]}
    for holder in holders:
        made = api.post("/verifications/policy", policy(attribute("name", **only)))
        answer(holder, made["verificationRequestUrl"])


def text(page):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def part(page, label):
    """One section of the page."""
    return text(page.partition(f'<h2 id="{label}">')[2].partition("</section>")[0])


def test_all_of_a_person_is_in_one_order(browser, url, known):
    page = read(browser, f"{url}/connections/{known.pk}/person")
    assert "<h1><bdi>Alice</bdi></h1>" in page
    happened = part(page, "timeline")
    parts = [
        "Yes, thank you.",
        "Are you well?",
        "Not accepted yet",
        "Valid",
        "Has the card",
    ]
    places = [happened.index(one) for one in parts]
    assert places == sorted(places)
    assert "Not accepted yet" in part(page, "waits") and "Has the card" in part(
        page, "cards"
    )
    newest = Credential.objects.filter(role="issuer").latest("pk")
    assert f'href="{url}/credentials/new?again={newest.pk}">Issue<' in page
    assert f'href="{url}/verifications/new?connection={known.pk}"' in page
    assert f'href="{url}/connections/{known.pk}/messages">Write' in page


def test_the_rows_of_lists_lead_to_it(browser, url, known):
    address = f'href="{url}/connections/{known.pk}/person"'
    for kind in ("credentials", "verifications", "connections"):
        assert address in read(browser, f"{url}/{kind}")
    assert address in read(browser, f"{url}/search?q=Zoe")
    hosted = Wallet.objects.get(is_organization=False)
    for kind in ("credentials", "verifications", "connections"):
        assert "/person" not in read(browser, f"{url}/wallets/{hosted.pk}/{kind}")


def test_a_revoked_card_is_not_held(browser, url, known):
    revocation.revoke(Credential.objects.get(role="issuer", state="Issued"))
    page = read(browser, f"{url}/connections/{known.pk}/person")
    assert "They hold no card" in part(page, "cards")
    assert "Revoked" in part(page, "timeline")


def test_it_shows_the_wallet_and_its_link(browser, url, known):
    address = f"{url}/connections/{known.pk}/person"
    wallet = Wallet.objects.get(is_organization=False)
    assert "without a personal link" in text(read(browser, address))
    create_link(wallet, by=audit.SYSTEM)
    page = read(browser, address)
    assert f'href="{url}/wallets/{wallet.pk}"' in page
    assert "whose personal link nobody has opened" in text(page)
    Connection.objects.filter(pk=known.pk).update(their_key="somebody else")
    assert "Wallet here" not in read(browser, address)


def test_whom_a_link_names_has_a_page_with_what_waits(browser, url, api, definition):
    first, link = by_link(api, definition)
    second, _ = by_link(api, definition, "ZOE EXAMPLE")
    by_link(api, definition, "Zoë Examples")
    listed = read(browser, f"{url}/credentials")
    assert f'href="{url}/credentials/{first.pk}/person"' in listed
    page = read(browser, f"{url}/credentials/{first.pk}/person")
    assert "<h1><bdi>Zoë Example</bdi></h1>" in page
    assert link in page and part(page, "timeline").count("Not accepted yet") == 2
    assert "by the same name" in part(page, "waits")
    assert ">Write<" not in page
    assert f'href="{url}/credentials/new?again={first.pk}">Issue<' in page


def test_issue_begins_with_the_person_and_the_kind_of_card_they_have(
    browser, url, api, alice, definition
):
    """Of another kind, it has what the two kinds share."""
    first, _ = by_link(api, definition)
    page = read(browser, f"{url}/credentials/new?again={first.pk}")
    assert page.count('value="Zoë Example"') == 2 and 'value="2020"' in page
    trainer = api.defines("Name", "level", name="Trainer card")
    choice = read(browser, f"{url}/credentials/new?like={first.pk}")
    [other] = re.findall(
        rf"\?definition=([^&\"]+)&amp;like={first.pk}\"[^T]*Trainer", choice
    )
    page = read(browser, f"{url}/credentials/new?definition={other}&like={first.pk}")
    assert "Issue <bdi>Trainer card" in page and page.count('value="Zoë Example"') == 2
    assert trainer["definitionId"] and 'value="2020"' not in page
    nobody = Connection.objects.get(name="Alice", wallet__is_organization=True)
    page = read(browser, f"{url}/connections/{nobody.pk}/person")
    assert f"{url}/credentials/new?connection={nobody.pk}" in page


def test_their_checks_by_a_link_are_there(browser, viewer, url, api, known, definition):
    """Of an answer that names somebody else of a similar name, nothing."""
    bob = api.hosts("Bob")
    bob.meets(api)
    bob.receives(api, definition, VALUES | {"name": "Zoë Examples"})
    asks_name(api, definition, api.met, bob)
    by_link(api, definition)
    offer = Credential.objects.filter(role="issuer").latest("pk")
    for path in (f"connections/{known.pk}", f"credentials/{offer.pk}"):
        page = read(browser, f"{url}/{path}/person")
        assert part(page, "timeline").count("Policy Valid by the same name") == 1
        assert "same name" not in read(viewer, f"{url}/{path}/person")


def test_others_of_the_name_are_named_and_not_mixed_in(
    browser, url, api, known, definition
):
    bob = api.hosts("Bob")
    bob.meets(api)
    bob.receives(api, definition, VALUES)
    offer, _ = by_link(api, definition)
    page = read(browser, f"{url}/connections/{known.pk}/person")
    others = Connection.objects.get(
        connection_id=bob.known_as(api), wallet__is_organization=True
    )
    assert f"{url}/connections/{others.pk}/person" in page
    assert part(page, "cards").count("Has the card") == 1
    assert "by the same name" in part(page, "waits")
    page = read(browser, f"{url}/credentials/{offer.pk}/person")
    assert page.count("/person") == 2, "Alice and Bob"


def test_without_the_search_by_name_nobody_is_put_together(
    browser, url, api, definition
):
    first, _ = by_link(api, definition)
    by_link(api, definition)
    Tenant.objects.update(name_search=False)
    page = read(browser, f"{url}/credentials/{first.pk}/person")
    assert part(page, "timeline").count("Not accepted yet") == 1


def test_who_may_not_see_names_sees_masks_and_no_texts_or_links(
    viewer, url, api, known, definition
):
    first, link = by_link(api, definition)
    by_link(api, definition)
    page = read(viewer, f"{url}/connections/{known.pk}/person")
    assert "Zoë" not in page and "thank you" not in page and ">Issue<" not in page
    assert "Written by them" in page and "same name" not in page
    page = read(viewer, f"{url}/credentials/{first.pk}/person")
    assert MASK in page and link not in page
    assert part(page, "timeline").count("Not accepted yet") == 1, (
        "equal names are told else"
    )
    Tenant.objects.update(names_for_all=True)
    assert "Zoë Example" in read(viewer, f"{url}/credentials/{first.pk}/person")


def test_a_card_over_a_connection_leads_to_the_person_of_that(browser, url, known):
    row = Credential.objects.filter(role="issuer").first()
    answer = browser.get(f"{url}/credentials/{row.pk}/person")
    assert answer.url == f"{url}/connections/{known.pk}/person"


def test_people_of_others_and_of_holders_are_not_there(browser, url, api, known):
    acme = Organization("Acme", owner=person("sam"))
    offer, _ = by_link(acme, acme.defines(*VALUES, recipientAttribute="name"))
    mine = Connection.objects.get(wallet__is_organization=False)
    card = Credential.objects.filter(role="holder").first()
    several = api.post("/connections", {"name": "All", "multiParty": True})
    several = Connection.objects.get(connection_id=several["connectionId"])
    for path in (
        f"credentials/{offer.pk}",
        f"credentials/{card.pk}",
        f"connections/{mine.pk}",
        f"connections/{several.pk}",
        f"connections/{offer.connection_id}",
    ):
        assert browser.get(f"{url}/{path}/person").status_code == 404, path
    sam = browser_of(acme.tenant.memberships.get().user)
    theirs = f"/studio/organizations/{acme.tenant.pk}/connections/{known.pk}/person"
    assert sam.get(theirs).status_code == 404


def test_of_many_the_newest_are_shown_with_ways_to_all(browser, url, known):
    with patch.object(pages, "MAX_SHOWN", 1), patch.object(pages, "MAX_WAITING", 0):
        page = read(browser, f"{url}/connections/{known.pk}/person")
    assert "1 more waits, below." in part(page, "waits")
    assert "thank you" in page and "Are you well?" not in page
    assert f"{url}/credentials?q={known.connection_id}" in page
    assert "These are the newest of each kind." in page


def test_twelve_statements_are_enough_and_an_index_serves_each(
    browser, url, api, known, definition
):
    asks_name(api, definition, api.met)
    offer, _ = by_link(api, definition)
    for path in (f"connections/{known.pk}", f"credentials/{offer.pk}"):
        read(browser, f"{url}/{path}/person")
        with CaptureQueriesContext(database) as captured:
            read(browser, f"{url}/{path}/person")
        reads = [one["sql"] for one in captured if one["sql"].startswith("SELECT")]
        assert len(reads) <= 12, "\n".join(reads)
        for sql in reads:
            assert not tables_read_whole(sql), sql


def tables_read_whole(sql):
    """The large tables that no index of the database can serve here."""
    with database.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        [[plan]] = cursor.fetchall()
        cursor.execute("RESET enable_seqscan")
    found = re.findall(
        r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"',
        json.dumps(plan) if not isinstance(plan, str) else plan,
        re.S,
    )
    return set(found) & set(LARGE)
