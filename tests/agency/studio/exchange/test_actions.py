"""What people do on the exchange page: cancel, send again, delete, look at the API."""

import json
import re
from datetime import timedelta
from html import unescape
from itertools import product
from unittest import mock

import pytest
from django.utils import timezone

from agency.studio.exchange.kinds import KINDS
from connections.models import Connection, OutboundMessage
from core.errors import Conflict
from credentials.models import Credential
from tenants.models import AuditEntry, Tenant
from tests.agency.studio.conftest import browser_with
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import walks
from tests.support.policies import attribute, policy
from tests.support.steps import step
from verifications.models import Verification

VALUES = {"name": "Alice", "year": "1999"}


@pytest.fixture
def offered(walk):
    return walks.credential(walk, "issuer", "Offered")


@step
def given_up(faber, known_phone):
    """A connection with a message that was given up."""
    row = Connection.objects.get()
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.filter(type="basicmessage/1.0/message")
    sent.update(status="exhausted", attempts=10, last_error="endpoint_unreachable")
    return row, sent


OPEN = [
    (walks.credential, "issuer", "Offered", "Cancel the offer"),
    (walks.credential, "holder", "Offered", "Decline for the holder"),
    (walks.credential, "issuer", "Requested", "Cancel the offer"),
    (walks.credential, "issuer", "Proposed", "Cancel the offer"),
    (walks.verification, "verifier", "Requested", "Cancel the request"),
    (walks.verification, "prover", "Requested", "Decline for the holder"),
]
FINISHED = [
    (walks.credential, "issuer", "Issued"),
    (walks.credential, "issuer", "Rejected"),
    (walks.verification, "verifier", "Accepted"),
]


@pytest.mark.parametrize("reach, role, state, label", OPEN)
def test_both_cancel_an_open_exchange(browser, walk, reach, role, state, label):
    row = reach(walk, role, state)
    assert label in text(browser.get(url_of(row)))
    browser.send(f"{url_of(row)}/cancel")
    assert {one.state for one in type(row).objects.all()} == {"Rejected"}
    page = text(browser.get(url_of(row)))
    assert "This side cancelled or declined it." in page and label not in page
    entry = AuditEntry.objects.get(action="exchange.cancelled")
    assert (entry.object_id, entry.actor_name) == (str(row.pk), "fay@faber.example")


@pytest.mark.parametrize("reach, role, state", FINISHED)
def test_a_finished_exchange_is_not_cancelled(browser, walk, reach, role, state):
    row = reach(walk, role, state)
    browser.send(f"{url_of(row)}/cancel")
    assert type(row).objects.get(pk=row.pk).state == state
    assert not AuditEntry.objects.filter(action="exchange.cancelled").exists()
    assert "note error" in text(browser.get(url_of(row)))


def test_a_message_that_was_given_up_is_sent_again(browser, given_up):
    row, sent = given_up
    page = text(browser.get(url_of(row)))
    [action] = re.findall(r'action="([^"]+/resend)"', page)
    browser.send(action)
    assert sent.get().status == "pending" and sent.get().attempts == 0
    entry = AuditEntry.objects.get(action="message.resent")
    assert entry.object_id == str(sent.get().pk)


def test_a_message_that_was_sent_or_is_being_sent_is_not_sent_again(browser, given_up):
    row, sent = given_up
    resend = f"{url_of(row)}/messages/{sent.get().pk}/resend"
    end = timezone.now() + timedelta(minutes=1)
    sent.update(status="pending", lease_owner=row.pk, lease_until=end)
    browser.send(resend)
    page = text(browser.get(url_of(row)))
    assert "is being sent right now" in page and "sent again now" not in page
    sent.update(status="done", body=None, lease_owner=None, lease_until=None)
    browser.send(resend)
    assert sent.get().status == "done"
    assert "was sent already" in text(browser.get(url_of(row)))
    assert not AuditEntry.objects.filter(action="message.resent").exists()


def test_a_message_of_another_object_is_not_there(browser, given_up, faber):
    _, sent = given_up
    other = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    path = f"{url_of(other)}/messages/{sent.get().pk}/resend"
    assert browser.send(path).status_code == 404
    assert sent.get().status == "exhausted"


def remove(browser, row, **more):
    typed = {"typed_name": row.name or row.connection_id} | more
    return browser.post(f"{url_of(row)}/remove", typed)


def test_a_connection_is_deleted_after_its_name_is_typed(browser, walk):
    row = walks.connection(walk, "inviter", "Connected")
    assert "Delete this connection?" in text(browser.get(f"{url_of(row)}/remove"))
    refused = text(remove(browser, row, typed_name="Somebody else"))
    assert "This is not the name of the connection." in refused
    assert Connection.objects.filter(pk=row.pk).exists()
    remove(browser, row)
    assert not Connection.objects.filter(pk=row.pk).exists()
    entry = AuditEntry.objects.get(action="connection.deleted")
    assert entry.object_id == str(row.pk)
    assert browser.get(url_of(row)).status_code == 404
    assert remove(browser, row).status_code == 404


def test_why_a_connection_is_not_deleted_is_said(browser, walk, monkeypatch):
    row = walks.connection(walk, "inviter", "Connected")
    refusal = Conflict("wrong_state", "It changed meanwhile.")
    monkeypatch.setattr(Connection, "remove", mock.Mock(side_effect=refusal))
    refused = remove(browser, row)
    assert refused["Location"] == url_of(row)
    assert "It changed meanwhile." in text(browser.get(url_of(row)))
    assert not AuditEntry.objects.filter(action="connection.deleted").exists()


def test_a_form_sent_twice_counts_once(browser, offered):
    for _ in range(2):
        browser.post(f"{url_of(offered)}/cancel", {"form_token": "1"})
    assert "counts once" in text(browser.get(url_of(offered)))


def test_owners_and_operators_act(faber, offered, given_up):
    for role, may in (("developer", False), ("operator", True)):
        theirs = browser_with(role, faber.tenant, role)
        for row, words in (
            (offered, ("Cancel the offer", "Reveal")),
            (given_up[0], ("Send again", "Delete this")),
        ):
            page = text(theirs.get(url_of(row)))
            assert [word in page for word in words] == [may, may], role
        status = theirs.send(f"{url_of(offered)}/cancel").status_code
        assert status == (302 if may else 403), role


def test_a_connection_is_not_cancelled_and_has_nothing_to_reveal(browser, walk, faber):
    row = walks.connection(walk, "inviter", "Connected")
    assert browser.send(f"{url_of(row)}/cancel").status_code == 404
    answer = browser.send(f"{url_of(row)}/reveal", reason="To look.")
    assert answer["Location"] == url_of(row)
    # That of a link alone has no page.
    faber.post("/verifications/policy", policy(attribute("name")))
    hidden = Connection.objects.get(connectionless=True)
    assert browser.get(url_of(hidden)).status_code == 404


def block(page, name):
    found = re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return unescape(found[1])


def test_the_json_is_what_the_api_answers_with_values_masked(browser, walk, faber):
    row = walks.credential(walk, "issuer", "Issued")
    shown = json.loads(block(text(browser.get(url_of(row))), "json"))
    answered = faber.get(f"/credentials/{row.pk}")
    assert shown.pop("values") == {"level": "••••••", "name": "••••••"}
    assert answered.pop("values") == walks.VALUES
    assert shown == answered


def test_the_curl_command_reads_the_object(browser, walk, faber, settings):
    walk.offers()
    walk.asks()
    models = (Connection, Credential, Verification)
    rows = [row for model in models for row in model.objects.all()]
    assert len(rows) == 6, "both sides of each"
    for row in rows:
        command = block(text(browser.get(url_of(row))), "curl")
        [path] = re.findall(rf'curl "{settings.PUBLIC_URL}([^"]+)"', command)
        assert '-H "Authorization: Bearer $ACCESS_TOKEN"' in command
        assert row.public_id in json.dumps(faber.get(path))


def test_the_link_is_there_while_somebody_can_use_it(browser, faber):
    invited = faber.invites()
    row = Connection.objects.get(connection_id=invited["connectionId"])
    link = f">{invited['invitationUrl'].partition('?')[0]}</code>"
    # Holders without an app need wallets that visitors may make.
    for may_make_wallets in (True, False):
        Tenant.objects.update(visitor_wallets=may_make_wallets)
        page = text(browser.get(url_of(row)))
        assert link in page
        assert (
            "settings?tab=holders#id_visitor_wallets" in page
        ) is not may_make_wallets
    settings_page = f"/studio/organizations/{faber.tenant.pk}/settings?tab=holders"
    assert 'id="id_visitor_wallets"' in text(browser.get(settings_page))
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    assert 'id="link-label"' not in text(browser.get(url_of(row)))


def test_who_reveals_no_values_gets_no_link_to_take_part(browser, faber):
    others = [browser_with(one, faber.tenant, one) for one in ("viewer", "developer")]
    faber.invites(name="Alice")
    definition = faber.defines("name", "year")["definitionId"]
    body = {"definitionId": definition, "credentialValues": VALUES}
    faber.post("/credentials", body)
    faber.post("/verifications/policy", policy(attribute("name")))
    for kind in KINDS.values():
        row = kind.rows().earliest("pk")
        link = kind(row).connection.invitation_url
        assert link in text(browser.get(url_of(row)))
        for other, path in product(others, (url_of(row), f"{url_of(row)}/live")):
            page = unescape(text(other.get(path)))
            assert link not in page and 'id="link"' not in page
            # The long form holds the same message.
            assert not re.search(r"[?&](c_i|oob|d_m|m)=", page)
