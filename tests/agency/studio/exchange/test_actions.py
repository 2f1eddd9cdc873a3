"""What people do on the exchange page: cancel, send again, delete, look at the API."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from agency.core.errors import Conflict
from agency.studio.exchange.kinds import KINDS, connection_of
from connections.models import Connection, OutboundMessage
from tenants.models import AuditEntry, Membership, Tenant
from tests.agency.studio.conftest import browser_of, person
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import walks


@pytest.fixture
def offered(walk):
    return walks.credential(walk, "issuer", "Offered")


@pytest.fixture
def viewer(faber):
    vic = person("vic")
    Membership.objects.create(
        tenant=faber.tenant, user=vic, role=Membership.Role.VIEWER
    )
    return browser_of(vic)


@pytest.fixture
def given_up(phone, faber):
    """A connection with a message that was given up."""
    row = phone.connects(faber)
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.filter(type="basicmessage/1.0/message")
    sent.update(status="exhausted", attempts=10, last_error="endpoint_unreachable")
    return row, sent


@pytest.mark.parametrize(
    "reach, role, state, label",
    [
        (walks.credential, "issuer", "Offered", "Cancel the offer"),
        (walks.credential, "holder", "Offered", "Decline for the holder"),
        (walks.credential, "issuer", "Requested", "Cancel the offer"),
        (walks.credential, "issuer", "Proposed", "Cancel the offer"),
        (walks.verification, "verifier", "Requested", "Cancel the request"),
        (walks.verification, "prover", "Requested", "Decline for the holder"),
    ],
)
def test_an_open_exchange_is_cancelled_for_both_sides(
    browser, walk, reach, role, state, label
):
    row = reach(walk, role, state)
    assert label in text(browser.get(url_of(row)))
    browser.send(f"{url_of(row)}/cancel")
    assert {one.state for one in type(row).objects.all()} == {"Rejected"}
    page = text(browser.get(url_of(row)))
    assert "This side cancelled or declined it." in page and label not in page
    entry = AuditEntry.objects.get(action="exchange.cancelled")
    assert (entry.object_id, entry.actor_name) == (str(row.pk), "fay@faber.example")


@pytest.mark.parametrize(
    "reach, role, state",
    [
        (walks.credential, "issuer", "Issued"),
        (walks.credential, "issuer", "Rejected"),
        (walks.verification, "verifier", "Accepted"),
    ],
)
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
    assert AuditEntry.objects.get(action="message.resent").object_id == str(
        sent.get().pk
    )


def test_a_message_that_was_sent_is_not_sent_again(browser, given_up):
    row, sent = given_up
    sent.update(status="done", body=None)
    browser.send(f"{url_of(row)}/messages/{sent.get().pk}/resend")
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


def test_why_a_connection_is_not_deleted_is_said_on_its_page(
    browser, walk, monkeypatch
):
    row = walks.connection(walk, "inviter", "Connected")

    def refuse(self):
        raise Conflict("wrong_state", "It changed meanwhile.")

    monkeypatch.setattr(Connection, "remove", refuse)
    refused = remove(browser, row)
    assert refused["Location"] == url_of(row)
    assert "It changed meanwhile." in text(browser.get(url_of(row)))
    assert not AuditEntry.objects.filter(action="connection.deleted").exists()


def test_a_message_that_is_being_sent_is_not_said_to_be_sent_again(browser, given_up):
    row, sent = given_up
    end = timezone.now() + timedelta(minutes=1)
    sent.update(status="pending", lease_owner=row.pk, lease_until=end)
    browser.send(f"{url_of(row)}/messages/{sent.get().pk}/resend")
    page = text(browser.get(url_of(row)))
    assert "is being sent right now" in page and "sent again now" not in page
    assert not AuditEntry.objects.filter(action="message.resent").exists()


def test_a_form_sent_twice_counts_once(browser, offered):
    form = {"form_token": "1"}
    browser.post(f"{url_of(offered)}/cancel", form)
    browser.post(f"{url_of(offered)}/cancel", form)
    assert "counts once" in text(browser.get(url_of(offered)))


def test_a_viewer_reads_and_changes_nothing(viewer, offered, given_up):
    row, sent = given_up
    for one in (offered, row):
        page = text(viewer.get(url_of(one)))
        assert not re.search(r"Cancel the|Send again|Delete this", page)
    paths = [
        f"{url_of(offered)}/cancel",
        f"{url_of(row)}/remove",
        f"{url_of(row)}/messages/{sent.get().pk}/resend",
    ]
    assert {viewer.send(path).status_code for path in paths} == {403}
    assert type(offered).objects.get(pk=offered.pk).state == "Offered"
    assert sent.get().status == "exhausted"


@pytest.mark.parametrize("role, status", [
    ("owner", 302), ("operator", 302), ("developer", 403), ("viewer", 403),
])  # fmt: skip
def test_owners_and_operators_act(faber, offered, role, status):
    someone = person("someone")
    Membership.objects.create(tenant=faber.tenant, user=someone, role=role)
    theirs = browser_of(someone)
    page = text(theirs.get(url_of(offered)))
    assert ("Cancel the offer" in page) is (status == 302)
    assert ("Reveal" in page) is (status == 302)
    assert theirs.send(f"{url_of(offered)}/cancel").status_code == status


def test_a_connection_is_neither_cancelled_nor_revealed(browser, walk):
    row = walks.connection(walk, "inviter", "Connected")
    for action in ("cancel", "reveal"):
        assert browser.send(f"{url_of(row)}/{action}").status_code == 404


def test_objects_of_another_organization_are_not_there(
    stranger, acme, offered, given_up
):
    row, sent = given_up
    paths = [
        *(url_of(one) for one in (offered, row)),
        f"{url_of(offered)}/live",
        f"{url_of(offered)}/cancel",
        f"{url_of(row)}/remove",
        f"{url_of(row)}/messages/{sent.get().pk}/resend",
    ]
    for path in paths:
        theirs = path.replace(str(row.tenant_id), str(acme.pk))
        assert stranger.get(path).status_code in (404, 405)
        assert stranger.get(theirs).status_code in (404, 405)
        if not path.endswith("live"):
            assert stranger.send(path).status_code in (404, 405)
            assert stranger.send(theirs).status_code in (404, 405)
    assert type(offered).objects.get(pk=offered.pk).state == "Offered"
    assert sent.get().status == "exhausted"


def test_forms_from_other_sites_are_refused(fay, offered):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(fay)
    path = f"{url_of(offered)}/cancel"
    assert browser.post(path, {"form_token": "1"}).status_code == 403
    assert type(offered).objects.get(pk=offered.pk).state == "Offered"


def test_without_an_account_one_is_asked_to_sign_in(client, offered):
    assert client.get(url_of(offered)).status_code == 302
    assert client.post(f"{url_of(offered)}/cancel").status_code == 302


def test_the_connection_of_a_link_alone_has_no_page(browser, faber):
    faber.post("/verifications/policy", {
        "name": "P", "version": "1.0", "attributes": [{"policyName": "name"}],
    })  # fmt: skip
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


@pytest.mark.parametrize("reach, role, state", [
    (walks.connection, "inviter", "Connected"),
    (walks.connection, "invitee", "Connected"),
    (walks.credential, "holder", "Issued"),
    (walks.verification, "verifier", "Requested"),
    (walks.verification, "prover", "Requested"),
])  # fmt: skip
def test_the_curl_command_reads_the_object(
    browser, walk, faber, settings, reach, role, state
):
    row = reach(walk, role, state)
    command = block(text(browser.get(url_of(row))), "curl")
    [path] = re.findall(rf'curl "{settings.PUBLIC_URL}([^"]+)"', command)
    assert '-H "Authorization: Bearer $ACCESS_TOKEN"' in command
    assert row.public_id in json.dumps(faber.get(path))


def test_the_link_is_there_while_somebody_can_use_it(browser, faber):
    invited = faber.invites()
    row = Connection.objects.get(connection_id=invited["connectionId"])
    assert f">{invited['invitationUrl'].partition('?')[0]}</code>" in text(
        browser.get(url_of(row))
    )
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    assert 'id="link-label"' not in text(browser.get(url_of(row)))


@pytest.mark.parametrize("may_make_wallets", [True, False])
def test_a_link_says_what_holders_without_an_app_need(
    browser, faber, may_make_wallets
):
    Tenant.objects.update(visitor_wallets=may_make_wallets)
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    page = text(browser.get(url_of(row)))
    assert ("settings#id_visitor_wallets" in page) is not may_make_wallets
    settings_page = f"/studio/organizations/{faber.tenant.pk}/settings"
    assert 'id="id_visitor_wallets"' in text(browser.get(settings_page))


@pytest.mark.parametrize("kind", ["connection", "credential", "verification"])
def test_a_viewer_gets_no_link_with_which_to_take_part(browser, viewer, faber, kind):
    if kind == "connection":
        faber.post("/connections", {"name": "Alice"})
    elif kind == "credential":
        definition = faber.defines("name", "year")["definitionId"]
        values = {"name": "Alice", "year": "1999"}
        body = {"definitionId": definition, "credentialValues": values}
        faber.post("/credentials", body)
    else:
        items = [{"policyName": "name", "attributeNames": ["name"]}]
        policy = {"name": "Policy", "version": "1.0", "attributes": items}
        faber.post("/verifications/policy", policy)
    row = KINDS[kind].with_related().get()
    link = connection_of(row).invitation_url
    assert link in text(browser.get(url_of(row)))
    for path in (url_of(row), f"{url_of(row)}/live"):
        page = unescape(text(viewer.get(path)))
        assert link not in page and 'id="link"' not in page
        # The long form holds the same message.
        assert not re.search(r"[?&](c_i|oob|d_m|m)=", page)
