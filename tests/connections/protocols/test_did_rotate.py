"""A peer changes its DID and key: which keys count when, and which are refused."""

from datetime import timedelta

import pytest
from django.utils import timezone

from connections.didcomm import dids, message
from connections.messaging import outbox
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    didcomm_endpoint,
)
from connections.protocols import basic_message, did_rotate
from core.work import transactions
from tests.support import queues
from tests.support.outside_agent import Agent
from tests.support.races import at_once


@pytest.fixture
def other(phone, row):
    """The same peer with its next key."""
    return phone.with_next_key()


def rotates(phone, verkey, **members):
    """Answers the type of what the peer was told."""
    phone.inbox.clear()
    to_did = dids.peer_4(verkey, phone.endpoint)
    phone.says(phone.build(did_rotate.ROTATE, to_did=to_did) | members)
    return phone.inbox[-1] if phone.inbox else None


def fresh(row):
    return Connection.objects.get(pk=row.pk)


def their_key_in_api(faber, row):
    body = faber.get(f"/connections/{row.connection_id}")
    assert body["endpoint"]["verkey"] == [body["theirKey"]]
    return body["theirKey"]


def writes(agent, text):
    """Whether the text was taken."""
    agent.says(agent.build(basic_message.MESSAGE, content=text))
    return any(one.unseal_text() == text for one in BasicMessage.objects.all())


def hour_passes(row):
    end = timezone.now() - timedelta(seconds=1)
    Connection.objects.filter(pk=row.pk).update(their_former_until=end)


def test_what_follows_the_agreement_goes_to_the_new_key(faber, phone, row, other):
    reply = rotates(phone, other.verkey)
    assert (reply.type, reply.body["status"]) == (did_rotate.ACK, "OK")
    phone.receives = other.receives
    body = {"connectionId": row.connection_id, "text": "to the new key"}
    faber.post("/messages", body)
    queues.worker_catches_up()
    assert other.newest(basic_message.MESSAGE).body["content"] == "to the new key"
    assert their_key_in_api(faber, row) == phone.verkey
    assert writes(phone, "sent before the agreement came")
    assert writes(other, "with the new key")
    assert their_key_in_api(faber, row) == other.verkey
    assert not writes(phone, "too late")


def test_the_former_key_ends_after_an_hour(faber, phone, row, other):
    rotates(phone, other.verkey)
    left = fresh(row).their_former_until - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    hour_passes(row)
    assert not writes(phone, "too late")
    assert their_key_in_api(faber, row) == phone.verkey, "the new key has not been used"
    phone.receives = other.receives
    assert writes(other, "at last")
    assert their_key_in_api(faber, row) == other.verkey


def test_saying_it_again_does_not_lengthen_the_hour(phone, row, other):
    rotates(phone, other.verkey)
    end = timezone.now() + timedelta(minutes=1)
    Connection.objects.filter(pk=row.pk).update(their_former_until=end)
    assert rotates(phone, Agent().verkey).type == did_rotate.ACK
    assert fresh(row).their_former_until == end
    hour_passes(row)
    assert rotates(phone, Agent().verkey) is None


def test_a_new_key_that_rotates_again_is_the_former_one_then(faber, phone, row, other):
    rotates(phone, other.verkey)
    phone.receives = other.receives
    third = Agent()
    rotates(other, third.verkey)
    found = fresh(row)
    assert (found.their_key, found.their_former_key) == (third.verkey, other.verkey)
    assert their_key_in_api(faber, row) == other.verkey
    assert not writes(phone, "from two keys ago")


def test_a_new_did_with_the_same_key_is_only_another_address(faber, phone, row):
    assert rotates(phone, phone.verkey).type == did_rotate.ACK
    assert writes(phone, "same key")
    assert their_key_in_api(faber, row) == phone.verkey
    assert fresh(row).their_former_key == ""


def keys_of_others(faber, acme, row):
    """Every kind of key that a wallet here has or had."""
    alice, bob = faber.hosts("Alice"), acme.hosts("Bob")
    alice.known_as(faber)
    bob.known_as(acme)
    invited = Connection.objects.get(connection_id=acme.invites()["connectionId"])
    mine = Connection.objects.get(connection_id=faber.hosts("Carol").known_as(faber))
    gone = mine.their_key
    mine.remove()
    hers, his = (Connection.objects.get(wallet=one.wallet_id) for one in (alice, bob))
    yield "of another wallet of the organization", hers.my_key.verkey
    yield "of another organization", invited.invitation_key.verkey
    yield "of a holder elsewhere", his.my_key.verkey
    yield "of the organization itself", row.my_key.verkey
    yield "that was deleted", gone


def test_a_key_of_a_wallet_here_is_no_key_of_a_peer_elsewhere(faber, acme, phone, row):
    before = fresh(row)
    for whose, verkey in keys_of_others(faber, acme, row):
        reply = rotates(phone, verkey)
        assert reply.type == did_rotate.PROBLEM, whose
        assert reply.body["description"]["code"] == "e.did.doc_unsupported"
        asked = InboundMessage.objects.latest("created_at")
        assert reply.thread_id == asked.message_id
        after = fresh(row)
        for name in ("their_key", "their_did", "their_endpoint", "their_former_key"):
            assert getattr(after, name) == getattr(before, name)
    assert writes(phone, "still the same peer")


def test_a_hosted_peer_takes_keys_of_its_own_wallet_only(faber, acme):
    alice, bob = faber.hosts("Alice"), acme.hosts("Bob")
    alice.known_as(faber)
    bob.known_as(acme)
    row = Connection.objects.get(wallet=alice.wallet_id)
    theirs = Connection.objects.get(connection_id=alice.known_as(faber))
    strange = Connection.objects.get(wallet=bob.wallet_id).my_key
    for key, is_taken in ((strange, False), (row.wallet.create_key(), True)):
        to_did = dids.peer_4(key.verkey, didcomm_endpoint())
        with transactions.atomic():
            rotation = message.build(did_rotate.ROTATE, to_did=to_did)
            outbox.enqueue(fresh(row), rotation)
        assert (fresh(theirs).their_key == key.verkey) is is_taken


def test_a_did_that_cannot_be_resolved_is_refused_by_its_code(phone, row):
    for to_did in ("did:web:peer.example", "did:peer:4zx", "x" * 9000):
        phone.inbox.clear()
        phone.says(phone.build(did_rotate.ROTATE, to_did=to_did))
        report = phone.newest(did_rotate.PROBLEM)
        assert report.body["description"]["code"] == "e.did.unresolvable"
        assert fresh(row).their_key == phone.verkey


def test_the_same_envelope_again_changes_nothing(phone, row, other):
    to_did = dids.peer_4(other.verkey, phone.endpoint)
    data = phone.pack(phone.build(did_rotate.ROTATE, to_did=to_did))
    for _ in range(2):
        assert phone.post(data).status_code == 202
        queues.sweep()
    phone.receives = other.receives
    assert writes(other, "with the new key")
    before = Connection.objects.filter(pk=row.pk).values().get()
    assert phone.post(data).status_code == 202
    queues.sweep()
    assert Connection.objects.filter(pk=row.pk).values().get() == before
    assert [one.type for one in phone.inbox].count(did_rotate.ACK) == 1


def test_of_two_new_keys_at_once_one_counts_and_the_former_is_heard(phone, row):
    """Both are agreed to, in either order; the last one is where messages go."""
    candidates = [Agent().verkey for _ in range(4)]
    for verkey in candidates:
        to_did = dids.peer_4(verkey, phone.endpoint)
        phone.post(phone.pack(phone.build(did_rotate.ROTATE, to_did=to_did)))
    at_once(*[queues.tasks.sweep] * 4)
    queues.worker_catches_up()
    found = fresh(row)
    assert found.their_key in candidates and found.their_former_key == phone.verkey
    assert [one.type for one in phone.inbox].count(did_rotate.ACK) == 4
    assert writes(phone, "heard for an hour")


def test_what_is_refused_came_by_the_new_key_all_the_same(faber, phone, row, other):
    rotates(phone, other.verkey)
    phone.receives = other.receives
    other.says(other.build("unheard-of/1.0/question"))
    assert their_key_in_api(faber, row) == other.verkey
    assert not writes(phone, "too late")


def test_a_stranger_who_is_refused_changes_no_key(faber, phone, row, other):
    rotates(phone, other.verkey)
    stranger = Agent()
    stranger.their_key, stranger.receives = phone.their_key, phone.receives
    stranger.says(stranger.build("unheard-of/1.0/question"))
    assert their_key_in_api(faber, row) == phone.verkey
    assert writes(phone, "still heard")
