"""Texts between the two sides of a connection."""

from datetime import UTC, datetime, timedelta

import pytest

from connections.didcomm import message as didcomm
from connections.models import BasicMessage, Connection
from connections.protocols import basic_message, handshakes, trust_ping
from tests.support.errors import assert_error, error_of

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def writes(organization, connection_id, text="Hello"):
    return organization.post("/messages", {"connectionId": connection_id, "text": text})


def listed(organization, connection_id):
    return organization.get(f"/messages/connection/{connection_id}")


@pytest.fixture
def known(faber, met):
    """Faber's id of its connection with Alice."""
    return met.known_as(faber)


def test_both_sides_have_what_the_organization_wrote(faber, alice, known):
    written = writes(faber, known, " Hello, Alice: ünïcødé ")
    [mine] = listed(faber, known)
    assert written == mine
    assert (mine["text"], mine["direction"]) == (" Hello, Alice: ünïcødé ", "Outgoing")
    assert (mine["typeName"], mine["connectionId"]) == ("BasicMessageRecord", known)
    hers = BasicMessage.objects.get(wallet__wallet_id=alice.wallet_id)
    assert (hers.unseal_text(), hers.direction) == (mine["text"], "Incoming")
    assert hers.sent_at.strftime("%Y-%m-%dT%H:%M:%S") == mine["sentTime"][:19]
    for row in BasicMessage.objects.all():
        assert b"Alice" not in bytes(row.text), "it is sealed"
    assert_error(error_of(faber.get, f"/messages/{hers.pk}"), 404, "not_found")


def test_the_organization_reads_texts_the_newest_first(faber, alice, known):
    row = Connection.objects.get(wallet__wallet_id=alice.wallet_id)
    basic_message.send_text(row, "Hi")
    [record] = listed(faber, known)
    assert (record["text"], record["direction"]) == ("Hi", "Incoming")
    told = {"connectionId": known, "timestamp": record["sentTime"]}
    told |= {"text": "Hi", "direction": "Incoming"}
    assert faber.get(f"/messages/{record['id']}") == told
    writes(faber, known, "two")
    writes(faber, faber.hosts("Bob").known_as(faber), "three")
    assert [one["text"] for one in listed(faber, known)] == ["two", "Hi"]


def test_two_organizations_write_to_each_other(faber, acme):
    invited, row = faber.invites(), Connection.objects.get
    theirs = acme.tenant.wallets.get(is_organization=True)
    invitation = didcomm.read(didcomm.decode_json(invited["invitation"]))
    mine = handshakes.accept_invitation(theirs, invitation)
    writes(acme, mine.connection_id, "Offer?")
    [got] = listed(faber, row(pk=invited["connectionId"]).connection_id)
    assert (got["text"], got["direction"]) == ("Offer?", "Incoming")


def test_before_a_peer_comes_and_after_it_went_it_is_409(faber, alice, known):
    invited = faber.invites()["connectionId"]
    assert_error(error_of(writes, faber, invited), 409, "wrong_state")
    faber.delete(f"/api/wallets/{alice.wallet_id}")
    assert_error(error_of(writes, faber, known), 409, "connection_gone")
    assert listed(faber, invited) == listed(faber, known) == []


def test_a_bad_text_is_400_and_another_organization_404(faber, acme, known):
    for text in (None, "", {}, ["a"], "x" * 20_001):
        error = error_of(writes, faber, known, text)
        assert (error.status, list(error.body["errors"])) == (400, ["text"])
    writes(faber, known)
    [mine] = listed(faber, known)
    for error in (
        error_of(acme.get, f"/messages/{mine['id']}"),
        error_of(listed, acme, known), error_of(writes, acme, known),
    ):  # fmt: skip
        assert_error(error, 404, "not_found")
    faber.delete(f"/connections/{known}")
    assert not BasicMessage.objects.filter(direction="Outgoing").exists()


def test_a_phone_writes_and_is_written_to(faber, any_phone):
    row = any_phone.connects(faber)
    text = {"content": "Ahoy", "sent_time": "2026-01-31 08:00:00Z"}
    any_phone.says(any_phone.build(basic_message.MESSAGE, **text))
    [got] = listed(faber, row.connection_id)
    assert (got["text"], got["sentTime"]) == ("Ahoy", "2026-01-31T08:00:00.000000Z")
    writes(faber, row.connection_id, "Welcome")
    any_phone.says(any_phone.build(trust_ping.PING, response_requested=False))
    sent = any_phone.newest(basic_message.MESSAGE)
    assert (sent.body["content"], sent.prefix) == ("Welcome", any_phone.prefix)


def test_a_text_that_cannot_be_kept_is_answered_by_a_problem_report(faber, row, phone):
    for content in (None, "", 7, {}, "x" * 20_001):
        phone.inbox.clear()
        phone.says(phone.build(basic_message.MESSAGE, content=content))
        assert phone.inbox[-1].is_problem_report
    assert listed(faber, row.connection_id) == []


MINUTE_AGO = NOW - timedelta(minutes=1)


@pytest.mark.parametrize("sent_time, read", [
    ("2026-11-21 07:59:00Z", MINUTE_AGO),
    ("2026-11-21T08:59:00.123456789+01:00", MINUTE_AGO.replace(microsecond=123456)),
    ("2026-11-21T07:59:00", MINUTE_AGO),
    *[
        (time, NOW)
        for time in (
            "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", {"a": 1},
            "2036-11-21T07:59:00Z", "1970-01-01T00:00:00Z", "yesterday", None, 7,
        )
    ],
])  # fmt: skip
def test_the_time_is_read_in_each_form_and_never_believed_blindly(sent_time, read):
    body = didcomm.build(basic_message.MESSAGE, content="Hi", sent_time=sent_time)
    assert basic_message.read_message(didcomm.read(body), NOW) == ("Hi", read)
