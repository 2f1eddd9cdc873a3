"""The rows that are ticked in a list are revoked, sent again, or their links copied."""

import html
import re
from unittest.mock import patch

import pytest

from connections.link_expiry import end_link
from connections.models import Connection, OutboundMessage
from core.database import clock
from core.errors import Unavailable
from credentials import revocation
from credentials.models import Credential, CredentialDefinition
from tenants.models import AuditEntry
from tests.agency.studio.conftest import actions, browser_of, person, read
from tests.factories import OutboundMessageFactory
from tests.support.people import Organization
from tests.support.steps import step
from verifications.models import Verification
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice Example", "year": "2020"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}


@step
def definition(faber):
    return faber.defines(*VALUES, supportRevocation=True, recipientAttribute="name")


def issue(api, alice, definition, number):
    for _ in range(number):
        alice.receives(api, definition, VALUES)
    return Credential.objects.filter(role="issuer").order_by("-pk")


def by_link(api, definition, **values):
    body = {"definitionId": definition["definitionId"]}
    return api.post("/credentials", body | {"credentialValues": VALUES | values})


def chosen(browser, url, act, rows):
    """The page that asks."""
    query = "".join(f"&chosen={row.pk}" for row in rows)
    return read(browser, f"{url}/chosen?act={act}&back=state%3DIssued{query}")


def send(browser, url, page):
    """Send the form of that page. Return the notes of the list that follows."""
    fields = dict(re.findall(r'name="(act|back)" value="([^"]*)"', page))
    keys = re.findall(r'name="chosen" value="([^"]*)"', page)
    answer = browser.send(f"{url}/chosen", chosen=keys, **fields)
    assert answer.status_code == 302
    return notes(browser.get(answer.url).text), answer.url


def notes(page):
    found = re.findall(r'<p class="note \w+">(.*?)</p>', page)
    return [html.unescape(one) for one in found]


def test_the_list_has_boxes_for_who_may_act_on_its_rows(
    browser, viewer, url, api, alice, definition
):
    [row] = issue(api, alice, definition, 1)
    box = f'<input type="checkbox" name="chosen" value="{row.pk}"'
    page = read(browser, f"{url}/credentials")
    assert box in page and page.count('name="act"') == 3
    assert 'name="act"' not in read(viewer, f"{url}/credentials")
    hosted = Wallet.objects.get(wallet_id=alice.wallet_id)
    mine = read(browser, f"{url}/wallets/{hosted.pk}/credentials")
    assert 'name="chosen"' not in mine
    assert 'name="chosen"' not in read(browser, f"{url}/search?q=Alice")


def test_cards_are_revoked_once_after_a_page_that_names_them(
    browser, url, api, alice, definition
):
    first, *others = issue(api, alice, definition, 3)
    revocation.revoke(first)
    open_offer = by_link(api, definition)["credentialId"]
    rows = [first, *others, Credential.objects.get(pk=open_offer)]
    page = chosen(browser, f"{url}/credentials", "revoke", rows)
    assert "Revoke 2 credentials?" in page and "Left out: 2" in page
    assert page.count("Alice Example") == 4 and "It is not issued." in page
    # Somebody revokes one meanwhile.
    revocation.revoke(others[0])
    told, address = send(browser, f"{url}/credentials", page)
    assert told == ["1 revoked, 1 already was."]
    assert address.endswith("/credentials?state=Issued")
    states = Credential.objects.filter(pk__in=[one.pk for one in rows[:3]])
    assert {one.state for one in states} == {"Revoked"}
    assert actions(action__startswith="credential.revoked") == ["credential.revoked"]
    assert {one["state"] for one in alice.get("/credentials")} == {"Revoked"}


def test_a_form_that_is_sent_twice_counts_once(browser, url, api, alice, definition):
    [row] = issue(api, alice, definition, 1)
    fields = {"act": "revoke", "chosen": [str(row.pk)], "form_token": "one"}
    for _ in range(2):
        browser.send(f"{url}/credentials/chosen", **fields)
    assert AuditEntry.objects.filter(action="credential.revoked").count() == 1


def test_they_are_revoked_also_if_the_ledger_does_not_answer(
    browser, url, api, alice, definition
):
    rows = issue(api, alice, definition, 2)
    page = chosen(browser, f"{url}/credentials", "revoke", rows)
    away = Unavailable("ledger_unavailable", "Far does not respond.")
    with patch.object(revocation, "publish_list", side_effect=away):
        told, _ = send(browser, f"{url}/credentials", page)
    assert told == ["Far does not respond.", "2 revoked."]
    assert {row.state for row in rows.all()} == {"Revoked"}


def test_links_are_copied_with_whom_they_are_for(browser, url, api, definition):
    first = by_link(api, definition)
    second = by_link(api, definition, name="=cmd()")
    over = by_link(api, definition, name="Olga")["credentialId"]
    expired = Credential.objects.get(pk=over).connection
    Connection.objects.filter(pk=expired.pk).update(expires_at=clock.now())
    rows = Credential.objects.filter(role="issuer").order_by("pk")
    page = html.unescape(chosen(browser, f"{url}/credentials", "links", rows))
    assert f"Alice Example\t{first['offerUrl']}\n" not in page, "the newest is first"
    assert f"'=cmd()\t{second['offerUrl']}\nAlice Example\t{first['offerUrl']}" in page
    assert "2 links" in page and "Left out: 1" in page


def test_links_are_downloaded_and_printed_with_whom_they_are_for(
    browser, url, api, definition
):
    first, formula = by_link(api, definition), by_link(api, definition, name="=cmd()")
    rows = Credential.objects.filter(role="issuer").order_by("pk")
    query = "&".join(f"chosen={row.pk}" for row in rows)
    address = f"{url}/credentials/chosen?act=links&back=state%3DOffered&{query}"
    answer = browser.get(f"{address}&as=csv")
    assert answer["Content-Type"].startswith("text/csv")
    assert f"'=cmd(),{formula['offerUrl']}\r\n" in answer.text
    assert f"Alice Example,{first['offerUrl']}\r\n" in answer.text
    api.tenant.default_language = "de"
    api.tenant.save()
    printed = read(browser, f"{address}&as=print")
    assert (
        printed.count('alt="QR code for') == 2 and "<bdi>Alice Example</bdi>" in printed
    )
    assert printed.count("Scannen Sie das mit Ihrem Handy") == 2
    assert html.escape(address) in printed and first["offerUrl"] not in printed


def test_who_has_not_accepted_is_one_click_away(browser, url, api, alice, definition):
    alice.receives(api, definition, VALUES)
    by_link(api, definition, name="Olga Late")
    page = html.unescape(read(browser, url))
    [query] = re.findall(r'credentials(\?[^"]+)">1 has not accepted</a>', page)
    shown = read(browser, f"{url}/credentials{query}")
    assert "Olga Late" in shown and "Alice Example" not in shown
    assert "Made since" in shown and "1 credential<" in shown
    later = read(browser, f"{url}/credentials?state=Offered&since=2999-01-01")
    assert "No credential matches" in later
    assert browser.get(f"{url}/credentials?since=soon").status_code == 400


def test_a_revoked_card_says_what_to_do(browser, url, api, alice, definition):
    [row] = issue(api, alice, definition, 1)
    revocation.revoke(row)
    page = chosen(browser, f"{url}/credentials", "again", [row])
    assert "It is revoked: open it, and issue it again." in page


def test_the_links_of_requests_and_invitations_are_copied_too(browser, url, api):
    asked = api.post("/verifications/policy", POLICY)["verificationRequestUrl"]
    row = Verification.objects.get()
    assert asked in chosen(browser, f"{url}/verifications", "links", [row])
    invited = api.invites(name="Bob")
    row = Connection.objects.get(connection_id=invited["connectionId"])
    page = chosen(browser, f"{url}/connections", "links", [row])
    assert f"Bob\t{invited['invitationUrl']}" in page
    connections = read(browser, f"{url}/connections")
    assert re.findall(r'name="act" value="(\w+)"', connections) == ["links"]


def test_an_offer_that_has_ended_is_made_again(browser, url, api, definition):
    made = by_link(api, definition)
    first = Credential.objects.get(pk=made["credentialId"])
    Credential.objects.filter(pk=first.pk).update(reference="member 4711")
    page = chosen(browser, f"{url}/credentials", "again", [first])
    assert "1 link still waits" in page and made["offerUrl"] in page
    assert "0 credentials" not in page and "There is nothing" not in page
    Connection.objects.filter(pk=first.connection_id).update(
        expires_at=clock.now(), expiry_due_at=clock.now()
    )
    end_link(first.connection)
    page = chosen(browser, f"{url}/credentials", "again", [first])
    assert "A new offer, with the same values" in page
    told, _ = send(browser, f"{url}/credentials", page)
    assert told == ["1 sent again."]
    again = Credential.objects.exclude(pk=first.pk).get()
    assert (again.state, again.reference) == ("Offered", "member 4711")
    assert again.unsealed_values() == VALUES
    assert again.unsealed_recipient_name() == "Alice Example"
    assert again.connection.token != first.connection.token
    assert actions(action="credential.offered") == ["credential.offered"]


def test_what_alice_declined_is_offered_and_asked_again(
    browser, url, api, alice, definition
):
    api.offers(alice, definition, VALUES)
    api.asks(alice, attributes=POLICY["attributes"])
    for model in (Credential, Verification):
        model.objects.get(wallet__wallet_id=alice.wallet_id).decline("not_now")
    rows = Credential.objects.filter(role="issuer")
    page = chosen(browser, f"{url}/credentials", "again", rows)
    assert send(browser, f"{url}/credentials", page)[0] == ["1 sent again."]
    assert alice.newest("credentials")["state"] == "Offered"
    rows = Verification.objects.filter(role="verifier")
    page = chosen(browser, f"{url}/verifications", "again", rows)
    assert send(browser, f"{url}/verifications", page)[0] == ["1 sent again."]
    assert alice.newest("verifications")["state"] == "Requested"


def test_what_cannot_be_offered_again_says_why(browser, url, api, alice, definition):
    api.offers(alice, definition, VALUES)
    Credential.objects.get(role="holder").decline("no")
    row = Credential.objects.get(role="issuer")
    page = chosen(browser, f"{url}/credentials", "again", [row])
    CredentialDefinition.objects.update(deleted_at=clock.now())
    told, _ = send(browser, f"{url}/credentials", page)
    assert told == ["0 sent again. 1 not: Its definition is deleted."]
    Credential.objects.filter(pk=row.pk).update(values=None)
    page = chosen(browser, f"{url}/credentials", "again", [row])
    assert "Its values are deleted." in page


def test_a_message_that_has_not_arrived_is_sent_again(
    browser, url, api, alice, definition
):
    api.offers(alice, definition, VALUES)
    row = Credential.objects.get(role="issuer")
    lost = OutboundMessageFactory(
        tenant=row.tenant,
        connection=row.connection,
        my_key_id=row.connection.my_key_id,
        thread_id=row.thread_id,
        status=OutboundMessage.Status.EXHAUSTED,
        endpoint="https://phone.example",
        body=b"sealed",
        attempts=10,
    )
    page = chosen(browser, f"{url}/credentials", "again", [row])
    assert "Its message, which has not arrived" in page
    assert send(browser, f"{url}/credentials", page)[0] == ["1 sent again."]
    lost.refresh_from_db()
    assert (lost.status, lost.attempts) == ("pending", 0)
    assert actions(action="message.resent") == ["message.resent"]


def test_nothing_ticked_and_rows_of_others_do_nothing(browser, url, api, definition):
    acme = Organization("Acme", owner=person("sam"))
    theirs = by_link(acme, acme.defines(*VALUES))["credentialId"]
    row = Credential.objects.get(pk=theirs)
    for fields in (
        {"act": "revoke"},
        {"act": "links", "chosen": [str(row.pk)]},
        {"act": "again", "chosen": ["nobody", str(row.pk)]},
        {"act": "delete", "chosen": [str(row.pk)]},
    ):
        sent = fields | {"form_token": fields["act"]}
        for send_form in (browser.get, browser.post):
            answer = send_form(f"{url}/credentials/chosen", sent)
            assert answer.url.endswith("/credentials")
            told = notes(browser.get(answer.url).text)
            assert told == ["Tick at least one row first."]
    mine = f"/studio/organizations/{acme.tenant.pk}/credentials"
    seen = chosen(browser_of(acme.tenant.memberships.get().user), mine, "links", [row])
    assert "1 link<" in seen


def test_a_page_of_rows_is_the_most_and_takes_few_statements(
    browser, url, api, definition, django_assert_max_num_queries
):
    for number in range(3):
        by_link(api, definition, name=f"Alice {number}")
    rows = list(Credential.objects.all())
    for act in ("revoke", "links", "again"):
        with django_assert_max_num_queries(12):
            chosen(browser, f"{url}/credentials", act, rows)
    with patch("agency.studio.chosen.PAGE_SIZE", 2):
        page = chosen(browser, f"{url}/credentials", "links", rows)
    assert "2 links" in page


def test_where_it_leads_back_to_is_always_the_list(browser, url, api, definition):
    query = (
        "act=links&back=state%3DOffered%26next%3Dhttps%3A%2F%2Fevil.example%26page%3D2"
    )
    answer = browser.get(f"{url}/credentials/chosen?{query}")
    assert answer.url == f"{url}/credentials?state=Offered&page=2"
