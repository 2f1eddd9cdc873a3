"""Issuing in the studio: what the page offers is what the API offers."""

import re
from datetime import date, timedelta

import pytest

from connections.models import Connection
from credentials.models import Credential, CredentialDefinition
from tenants.models import AuditEntry
from tests.agency.holders.links.conftest import text_of
from tests.agency.studio.conftest import read
from tests.support.steps import step
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"value_0": "Alice Smith", "value_1": "2020", "automatic_issuance": "on"}
DEFINITION = {
    "name": "Degree", "version": "1.0", "attributes": ["name", "year"],
    "supportRevocation": True, "claims": {"year": {"type": "integer"}},
}  # fmt: skip


@step
def definition(faber):
    faber.post("/definitions/credentials", DEFINITION)
    return CredentialDefinition.objects.get()


@pytest.fixture
def page(api, url, definition):
    """The address of its form."""
    return f"{url}/credentials/new?definition={definition.pk}"


def offer(browser, page, **fields):
    answer = browser.send(page, **VALUES | {"confirmed": "yes"} | fields)
    assert answer.status_code == 302, answer.text
    return Credential.objects.get(pk=answer.url.rpartition("/")[2])


def states(api):
    return [one["state"] for one in api.get("/credentials")]


def test_without_any_connection_the_form_begins_with_the_values(browser, page):
    shown = read(browser, page)
    assert "id_find" not in shown and "QR code and a link" in shown
    assert "(optional)" not in shown
    assert re.search(r'name="value_0"[^>]* autofocus', shown)
    row = offer(browser, page)
    assert row.connection.connectionless


def test_an_offer_by_link_is_found_by_whom_it_is_for(browser, page, url, api):
    named = {"recipient_name": "Alice in Bern"}
    preview = browser.send(page, **VALUES, **named).text
    assert "To: <bdi>Alice in Bern (QR code or link" in preview
    row = offer(browser, page, **named)
    [offered] = api.get("/credentials")
    assert offered["recipientName"] == "Alice in Bern"
    for address in ("", "?q=alice", "?q=Bern", f"/{row.pk}"):
        shown = read(browser, f"{url}/credentials{address}")
        assert "<bdi>Alice in Bern</bdi>" in shown, address
    assert "Degree" not in read(browser, f"{url}/credentials?q=ern")
    assert "Bern" not in browser.get(row.connection.invitation_url).text


def test_over_a_connection_the_name_is_the_card_s(browser, page, api, alice):
    body = {"connection_id": alice.connection_id, "recipient_name": "Bob"}
    assert offer(browser, page, **body).connection.name == "Alice"
    [offered] = api.get("/credentials")
    assert offered["recipientName"] == "Bob"


def test_whom_it_is_for_is_first_the_name_of_the_connection(browser, page, alice):
    def whom(shown):
        [field] = re.findall(r'<input[^>]* name="recipient_name"[^>]*>', shown)
        return re.findall(r'value="([^"]*)"', field)

    connection = Connection.objects.get(connection_id=alice.connection_id)
    address = f"{page}&connection={connection.pk}"
    shown = read(browser, address)
    assert whom(shown) == ["Alice"]
    assert re.search(rf'value="{alice.connection_id}" selected', shown)
    assert "autofocus" not in shown, "the cursor would jump over the choice"
    assert whom(read(browser, page)) == []
    sought = {"look": "yes", "connection_id": alice.connection_id}
    named = sought | {"recipient_name": "Alice in Bern"}
    for fields, name in ((sought, "Alice"), (named, "Alice in Bern")):
        assert whom(browser.send(page, **fields).text) == [name]


def test_the_preview_itself_is_what_is_offered(browser, page, api):
    answer = browser.send(page, **VALUES)
    shown = answer.text
    assert "What the holder will see" in shown
    assert "year 2020" in text_of(answer)
    assert "To: <bdi>QR code or link" in shown
    assert 'class="mark' not in shown, "nothing has ended"
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown))
    assert not Credential.objects.exists()
    answer = browser.post(page, hidden | {"confirmed": "yes"})
    assert answer.status_code == 302, answer.text
    [offered] = api.get("/credentials")
    assert offered["values"] == {"name": "Alice Smith", "year": "2020"}
    assert offered["offerUrl"] in read(browser, answer.url)
    again = browser.post(page, hidden | {"confirmed": "yes"})
    assert again.status_code == 302 and len(api.get("/credentials")) == 1
    entry = AuditEntry.objects.get(action="credential.offered")
    assert entry.object_id == offered["credentialId"]
    assert "Alice" not in str(entry.details)
    seen = browser.send(page, **VALUES).text
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', seen))
    changed = browser.post(page, hidden | {"change": "yes"}).text
    assert 'value="Alice Smith"' in changed and len(api.get("/credentials")) == 1


def test_over_a_connection_it_is_issued_once_accepted(browser, page, api, alice):
    row = offer(browser, page, connection_id=alice.connection_id)
    assert row.automatic_issuance and states(api) == ["Offered"]
    alice.accepts_offer()
    assert states(api) == ["Issued"]


def test_the_connection_of_somebody_else_is_no_choice(browser, page, alice):
    Connection.objects.filter(connection_id=alice.connection_id).update(state="Invited")
    answer = browser.send(page, **VALUES, connection_id=alice.connection_id)
    assert "Select a valid choice" in answer.text


def test_a_number_that_is_none_is_refused_at_its_field(browser, page):
    for text in ("", "soon", "2147483648"):
        fields = VALUES | {"value_1": text, "confirmed": "yes"}
        shown = browser.send(page, **fields).text
        assert "Give a whole number" in shown and 'id="id_value_1_error"' in shown
    assert not Credential.objects.exists()


def test_unless_it_is_automatic_a_button_issues_it(browser, url, page, api, alice):
    row = offer(browser, page, connection_id=alice.connection_id, automatic_issuance="")
    path = f"{url}/credentials/{row.pk}"
    assert "Issue the credential" not in read(browser, path)
    alice.accepts_offer()
    assert states(api) == ["Requested"]
    assert "Issue the credential" in read(browser, path)
    browser.send(f"{path}/issue")
    assert states(api) == ["Issued"]
    again = browser.send(f"{path}/issue")
    assert 'class="note error"' in read(browser, again.url)
    assert AuditEntry.objects.filter(action="credential.issued").count() == 1


def test_what_was_issued_is_revoked_after_a_question(browser, url, page, api, alice):
    row = offer(browser, page, connection_id=alice.connection_id)
    path = f"{url}/credentials/{row.pk}"
    assert "Revoke this" not in read(browser, path)
    alice.accepts_offer()
    assert "Revoke this" in read(browser, path)
    assert "Revoke this credential?" in read(browser, f"{path}/revoke")
    assert states(api) == ["Issued"]
    browser.send(f"{path}/revoke")
    assert states(api) == ["Revoked"]
    assert alice.newest("credentials")["state"] == "Revoked"
    browser.send(f"{path}/revoke")
    assert AuditEntry.objects.filter(action="credential.revoked").count() == 1


def test_an_offer_is_accepted_for_a_hosted_holder(browser, url, page, api, alice):
    row = offer(browser, page, connection_id=alice.connection_id)
    assert row.wallet != Wallet.objects.get(wallet_id=alice.wallet_id)
    held = Credential.objects.get(role="holder")
    path = f"{url}/credentials/{held.pk}"
    assert "Accept for the holder" in read(browser, path)
    # The organization's own side has nothing to accept.
    browser.send(f"{url}/credentials/{row.pk}/accept")
    assert states(api) == ["Offered"]
    browser.send(f"{path}/accept")
    assert states(api) == ["Issued"]
    assert "Accept for the holder" not in read(browser, path)
    entry = AuditEntry.objects.get(action="exchange.accepted")
    assert entry.object_id == str(held.pk)
    # And so is a request.
    asked = api.asks(alice, attributes=[{"policyName": "name"}])["verificationId"]
    held = alice.newest("verifications")["verificationId"]
    browser.send(f"{url}/verifications/{held}/accept")
    assert api.get(f"/verifications/{asked}")["isValid"] is True


def test_the_first_page_asks_for_the_definition(browser, url, page, api):
    assert browser.get(f"{url}/credentials/new").url == page  # of one, none
    shown = read(browser, f"{url}/credentials/new?q=")
    assert "?definition=" in shown and "Degree" in shown
    api.delete(f"/definitions/credentials/{CredentialDefinition.objects.get()}")
    shown = read(browser, f"{url}/credentials/new")
    assert "No definition yet" in shown
    assert browser.get(page).status_code == 404


def test_a_date_is_chosen_and_signed_as_a_number(browser, url, api):
    claims = {"valid until": {"type": "date"}}
    body = DEFINITION | {"attributes": ["name", "valid until"], "claims": claims}
    api.post("/definitions/credentials", body)
    definition = CredentialDefinition.objects.get()
    path = f"{url}/credentials/new?definition={definition.pk}"
    shown = read(browser, path)
    assert re.search('<input type="date" name="value_1"[^>]* required', shown)
    [day, least] = re.search(r' value="([^"]*)"[^>]* min="([^"]*)"', shown).groups()
    least, day = date.fromisoformat(least), date.fromisoformat(day)
    assert 365 <= (day - least).days <= 366, "no day that is over, but one in a year"
    for wrong in ("", "2026-02-30", "soon", f"{least - timedelta(days=1)}"):
        refused = browser.send(path, value_1=wrong, confirmed="yes").text
        assert 'id="id_value_1_error"' in refused, wrong
    last = f"{least.year + 1}-12-31"
    seen = browser.send(path, value_1=last).text
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', seen))
    changed = browser.post(path, hidden | {"change": "yes"}).text
    assert f'value="{last}"' in changed
    offer(browser, path, value_1=last)
    [offered] = api.get("/credentials")
    wanted = {"name": "Alice Smith", "valid until": last.replace("-", "")}
    assert offered["values"] == wanted


def test_a_number_that_is_a_day_by_its_name_says_how_it_is_written(browser, url, api):
    for name, says in (("birthdate", True), ("validUntil", True), ("year", False)):
        api.defines("name", name, claims={name: {"type": "integer"}})
        definition = CredentialDefinition.objects.latest("pk")
        shown = read(browser, f"{url}/credentials/new?definition={definition.pk}")
        assert ("such as 20260131" in shown) == says
