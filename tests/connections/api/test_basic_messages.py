"""Texts between the two sides of a connection."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from connections.didcomm import message as didcomm
from connections.models import BasicMessage, Connection
from connections.protocols import basic_message, handshakes, trust_ping
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def writes(organization, connection_id, text="Hello"):
    return organization.post(
        "/messages",
        {"connectionId": connection_id, "text": text},
    )


def listed(organization, connection_id):
    return organization.get(f"/messages/connection/{connection_id}")


def answers(holder, text):
    """The holder's side writes; no operation of the API does this for a wallet."""
    row = Connection.objects.get(wallet__wallet_id=holder.wallet_id)
    basic_message.send_text(row, text)


def test_both_sides_have_what_the_organization_wrote(faber):
    alice = faber.hosts()
    connection_id = alice.known_as(faber)
    assert writes(faber, connection_id, " Hello, Alice: ünïcødé ") is None
    [mine] = listed(faber, connection_id)
    assert (mine["text"], mine["direction"]) == (" Hello, Alice: ünïcødé ", "Outgoing")
    assert (mine["typeName"], mine["connectionId"]) == (
        "BasicMessageRecord",
        connection_id,
    )
    hers = BasicMessage.objects.get(wallet__wallet_id=alice.wallet_id)
    assert (hers.unseal_text(), hers.direction) == (mine["text"], "Incoming")
    assert hers.sent_at.strftime("%Y-%m-%dT%H:%M:%S") == mine["sentTime"][:19]


def test_the_organization_reads_what_the_holder_wrote(faber):
    alice = faber.hosts()
    connection_id = alice.known_as(faber)
    answers(alice, "Hi")
    [record] = listed(faber, connection_id)
    assert (record["text"], record["direction"]) == ("Hi", "Incoming")
    assert faber.get(f"/messages/{record['id']}") == {
        "connectionId": connection_id,
        "timestamp": record["sentTime"],
        "text": "Hi",
        "direction": "Incoming",
    }


def test_the_newest_comes_first_and_each_connection_has_its_own(faber):
    alice, bob = faber.hosts("Alice"), faber.hosts("Bob")
    for text in ("one", "two"):
        writes(faber, alice.known_as(faber), text)
    writes(faber, bob.known_as(faber), "three")
    assert [one["text"] for one in listed(faber, alice.known_as(faber))] == [
        "two",
        "one",
    ]


def test_two_organizations_write_to_each_other(faber, acme):
    invited, row = faber.invites(), Connection.objects.get
    theirs = acme.tenant.wallets.get(is_organization=True)
    invitation = didcomm.read(didcomm.decode_json(invited["invitation"]))
    mine = handshakes.accept_invitation(theirs, invitation)
    writes(acme, mine.connection_id, "Offer?")
    [got] = listed(faber, row(pk=invited["connectionId"]).connection_id)
    assert (got["text"], got["direction"]) == ("Offer?", "Incoming")


def test_without_a_connected_peer_it_is_409(faber):
    invited = faber.invites()["connectionId"]
    error = error_of(writes, faber, invited)
    assert_error(error, 409, "wrong_state")
    assert listed(faber, invited) == []


def test_after_the_peer_has_gone_it_is_409(faber):
    alice = faber.hosts()
    connection_id = alice.known_as(faber)
    faber.delete(f"/api/wallets/{alice.wallet_id}")
    assert_error(error_of(writes, faber, connection_id), 409, "connection_gone")
    assert listed(faber, connection_id) == []


def test_another_organizations_messages_are_404(faber):
    alice = faber.hosts()
    writes(faber, alice.known_as(faber))
    acme, [mine] = Organization("Acme"), listed(faber, alice.known_as(faber))
    assert_error(error_of(acme.get, f"/messages/{mine['id']}"), 404, "not_found")
    assert_error(error_of(listed, acme, alice.known_as(faber)), 404, "not_found")
    assert_error(error_of(writes, acme, alice.known_as(faber)), 404, "not_found")


def test_a_holders_own_rows_are_not_the_organizations(faber):
    alice = faber.hosts()
    writes(faber, alice.known_as(faber))
    hers = BasicMessage.objects.get(direction="Incoming")
    assert_error(error_of(faber.get, f"/messages/{hers.pk}"), 404, "not_found")


@pytest.mark.parametrize("text", [None, "", {}, ["a"], "x" * 20_001])
def test_a_bad_text_is_400(faber, text):
    alice = faber.hosts()
    error = error_of(writes, faber, alice.known_as(faber), text)
    assert (error.status, list(error.body["errors"])) == (400, ["text"])


def test_the_text_of_a_message_is_sealed(faber):
    alice = faber.hosts()
    writes(faber, alice.known_as(faber), "Balthazar-4711")
    for row in BasicMessage.objects.all():
        assert b"4711" not in bytes(row.text)


def test_a_phone_writes_and_is_written_to(faber, any_phone):
    row = any_phone.connects(faber)
    any_phone.says(
        any_phone.build(
            basic_message.MESSAGE,
            content="Ahoy",
            sent_time="2026-01-31 08:00:00Z",
        )
    )
    [got] = listed(faber, row.connection_id)
    assert (got["text"], got["sentTime"]) == ("Ahoy", "2026-01-31T08:00:00.000000Z")
    writes(faber, row.connection_id, "Welcome")
    any_phone.says(any_phone.build(trust_ping.PING, response_requested=False))
    sent = any_phone.newest(basic_message.MESSAGE)
    assert (sent.body["content"], sent.prefix) == ("Welcome", any_phone.prefix)


@pytest.mark.parametrize("content", [None, "", 7, {}, "x" * 20_001])
def test_a_text_that_cannot_be_kept_is_answered_by_a_problem_report(
    faber, phone, content
):
    row = phone.connects(faber)
    phone.says(phone.build(basic_message.MESSAGE, content=content))
    assert phone.inbox[-1].is_problem_report
    assert listed(faber, row.connection_id) == []


def test_a_replayed_text_is_kept_once(faber, phone):
    row = phone.connects(faber)
    body = phone.build(basic_message.MESSAGE, content="Ahoy")
    phone.says(body)
    phone.says(body)
    assert len(listed(faber, row.connection_id)) == 1


def test_a_stranger_cannot_write(faber, phone):
    row = phone.connects(faber)
    phone.says(phone.build(basic_message.MESSAGE, content="Ahoy"), anonymous=True)
    assert listed(faber, row.connection_id) == []


@pytest.mark.parametrize(
    "sent_time, read",
    [
        ("2026-11-21 07:59:00Z", NOW - timedelta(minutes=1)),
        (
            "2026-11-21T08:59:00.123456789+01:00",
            NOW - timedelta(minutes=1) + timedelta(0, 0, 123456),
        ),
        ("2026-11-21T07:59:00", NOW - timedelta(minutes=1)),
        ("0001-01-01T00:00:00+14:00", NOW),
        ("9999-12-31T23:59:59-14:00", NOW),
        ("2036-11-21T07:59:00Z", NOW),
        ("1970-01-01T00:00:00Z", NOW),
        ("yesterday", NOW),
        (None, NOW),
        (7, NOW),
        ({"a": 1}, NOW),
    ],
)
def test_the_time_is_read_in_each_form_and_never_believed_blindly(sent_time, read):
    body = didcomm.build(basic_message.MESSAGE, content="Hi", sent_time=sent_time)
    assert basic_message.read_message(didcomm.read(body), NOW) == ("Hi", read)


def test_deleting_the_connection_deletes_its_messages(faber):
    alice = faber.hosts()
    writes(faber, alice.known_as(faber))
    before = timezone.now()
    faber.delete(f"/connections/{alice.known_as(faber)}")
    assert not BasicMessage.objects.filter(
        direction="Outgoing", created_at__lt=before
    ).exists()
