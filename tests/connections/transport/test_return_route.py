"""Replies in the response of the sender's own call, for phones without an endpoint."""

import pytest
from django.utils import timezone

from connections import tasks
from connections.didcomm import envelope, message
from connections.messaging import outbox
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from connections.protocols import basic_message, connections_1_0, trust_ping
from connections.transport import return_route
from tests.support import queues
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import connects_without_endpoint
from tests.support.races import at_once
from wallets import keys

PENDING = OutboundMessage.Status.PENDING


@pytest.fixture
def row(pocket_row):
    return pocket_row


def ping(pocket, **members):
    return pocket.build(trust_ping.PING, **members)


def quiet(pocket):
    """A ping that wants nothing but what waits."""
    return ping(pocket, response_requested=False)


def texts(agent):
    found = [one for one in agent.inbox if one.type == basic_message.MESSAGE]
    return [one.body["content"] for one in found]


def put_behind_a_mediator(row, verkey):
    Connection.objects.filter(pk=row.pk).update(their_routing_keys=[verkey])
    row.refresh_from_db()


def test_a_phone_without_an_endpoint_connects_in_one_call(faber, any_pocket):
    row = connects_without_endpoint(any_pocket, faber)
    connected = ("Connected", "", any_pocket.verkey)
    assert (row.state, row.their_endpoint, row.their_key) == connected
    assert any_pocket.newest(connections_1_0.RESPONSE).prefix == any_pocket.prefix
    any_pocket.asks(ping(any_pocket))
    assert any_pocket.newest(trust_ping.PING_RESPONSE).prefix == any_pocket.prefix


def test_the_answer_has_the_content_type_of_the_call(row, pocket, subtests):
    for kind in (
        "ssi-agent-wire", "didcomm-envelope-enc", "json", "json; charset=utf-8",
    ):  # fmt: skip
        with subtests.test(kind):
            pocket.inbox.clear()
            answer = pocket.asks(ping(pocket), content_type=f"application/{kind}")
            plain = f"application/{kind.partition(';')[0]}"
            assert (answer.status_code, answer["Content-Type"]) == (200, plain)
            assert pocket.newest(trust_ping.PING_RESPONSE).sender == row.my_key.verkey


def test_with_nothing_to_say_or_asked_for_the_answer_is_empty(row, pocket, subtests):
    answer = pocket.asks(quiet(pocket))
    assert (answer.status_code, answer.content) == (202, b"")
    for route in ("none", None, 7, "sometimes", {}):
        with subtests.test(repr(route)):
            answer = pocket.asks(ping(pocket), route=route)
            assert (answer.status_code, answer.content) == (202, b"")


def test_what_waits_for_a_phone_is_fetched_one_by_one_in_order(row, pocket):
    for text in ("one", "two", "three"):
        basic_message.send_text(row, text)
    tasks.sweep()
    assert OutboundMessage.objects.filter(status=PENDING).count() == 3
    for _ in range(4):
        pocket.asks(quiet(pocket))
    assert texts(pocket) == ["one", "two", "three"]
    assert not OutboundMessage.objects.filter(status=PENDING).exists()


def test_what_waits_is_sealed_and_what_went_is_erased(row, pocket):
    basic_message.send_text(row, "Balthazar-4711")
    waiting = OutboundMessage.objects.get(status=PENDING)
    assert b"4711" not in bytes(waiting.body)
    pocket.asks(quiet(pocket))
    waiting.refresh_from_db()
    assert (waiting.status, waiting.body) == ("done", None)
    pocket.asks(quiet(pocket))
    waiting.refresh_from_db()
    assert (waiting.envelope, waiting.handed_to) == (None, "")


def test_a_call_whose_answer_was_lost_is_answered_the_same_again(row, pocket):
    asked = ping(pocket)
    first, again = pocket.asks(asked), pocket.asks(asked)
    assert first.content == again.content != b""
    assert InboundMessage.objects.filter(message_id=asked["@id"]).count() == 1
    pocket.asks(quiet(pocket))
    assert pocket.asks(asked).status_code == 202, "after others it is forgotten"


def test_an_answer_that_nobody_asks_for_again_is_forgotten_in_the_end(row, pocket):
    asked = ping(pocket)
    pocket.asks(asked)
    assert return_route.forget_old_replies() == 0
    OutboundMessage.objects.update(
        created_at=timezone.now() - return_route.REPLY_RETENTION * 1.1
    )
    tasks.forget_old_answers()
    assert not OutboundMessage.objects.exclude(handed_to="").exists()
    assert pocket.asks(asked).status_code == 202


def test_what_is_never_fetched_is_given_up_in_the_end(row):
    basic_message.send_text(row, "Hello")
    past = timezone.now() - outbox.UNFETCHED_EXPIRY
    OutboundMessage.objects.filter(status=PENDING).update(due_at=past)
    tasks.deliver()
    left = OutboundMessage.objects.get(type=basic_message.MESSAGE)
    given_up = ("exhausted", "not_fetched", None)
    assert (left.status, left.last_error, left.body) == given_up


def test_by_thread_only_that_thread_is_answered(row, pocket):
    basic_message.send_text(row, "waits")
    asked = ping(pocket)
    route = {"return_route": "thread", "return_route_thread": asked["@id"]}
    answer = pocket.post(pocket.pack(asked | {"~transport": route}))
    pocket.receives(answer.content)
    assert pocket.newest(trust_ping.PING_RESPONSE).thread_id == asked["@id"]
    assert texts(pocket) == []


def test_the_oldest_goes_first_and_the_reply_waits_for_the_next_call(row, pocket):
    basic_message.send_text(row, "older")
    pocket.asks(ping(pocket))
    assert texts(pocket) == ["older"]
    pocket.asks(quiet(pocket))
    assert pocket.newest(trust_ping.PING_RESPONSE)


def test_a_peer_with_an_endpoint_may_take_its_reply_in_the_answer_too(faber, phone):
    phone.connects(faber)
    phone.inbox.clear()
    answer = phone.asks(phone.build(trust_ping.PING))
    assert (answer.status_code, len(phone.inbox)) == (200, 1)
    queues.worker_catches_up()
    assert len(phone.inbox) == 1, "and it is not posted once more"


def test_what_is_packed_for_a_mediator_is_posted_and_not_overtaken(faber, phone):
    row = phone.connects(faber)
    mediator, phone.status = keys.generate_seed(), 500
    put_behind_a_mediator(row, keys.verkey_of(mediator))
    basic_message.send_text(row, "packed")
    outbox.pack_pending([row.my_key])
    basic_message.send_text(row, "later")
    answer = phone.asks(quiet(phone))
    assert (answer.status_code, answer.content) == (202, b"")
    packed, _ = OutboundMessage.objects.filter(status=PENDING).order_by("pk")
    opened = envelope.unpack(bytes(packed.envelope), lambda kids: (kids[0], mediator))
    assert message.parse(opened.body).body["to"] == phone.verkey
    packed.finish(body=None, envelope=None)
    phone.asks(quiet(phone))
    assert texts(phone) == ["later"], "which takes no way through the mediator"


def test_what_was_packed_for_a_phone_without_an_endpoint_is_fetched(row, pocket):
    put_behind_a_mediator(row, Agent().verkey)
    basic_message.send_text(row, "packed")
    outbox.pack_pending([row.my_key])
    pocket.asks(quiet(pocket))
    assert texts(pocket) == ["packed"]


def test_a_second_reply_to_a_peer_with_an_endpoint_is_posted(faber, phone):
    row = phone.connects(faber)
    phone.status = 500
    basic_message.send_text(row, "one")
    tasks.sweep()
    phone.inbox.clear()
    phone.asks(phone.build(trust_ping.PING))
    phone.status = 202
    queues.worker_catches_up()
    kinds = [one.type for one in phone.inbox]
    assert kinds == [basic_message.MESSAGE, trust_ping.PING_RESPONSE]


def test_a_stranger_fetches_nothing(row, pocket):
    basic_message.send_text(row, "for the phone")
    stranger = Agent()
    for verkey in (pocket.their_key, row.wallet.create_key().verkey):
        stranger.their_key = verkey
        assert stranger.asks(quiet(stranger)).status_code == 202
    assert pocket.asks(quiet(pocket), anonymous=True).status_code == 202
    assert OutboundMessage.objects.get(type=basic_message.MESSAGE).status == PENDING


def test_calls_at_once_hand_over_each_message_once(row, pocket):
    for number in range(4):
        basic_message.send_text(row, str(number))
    route = {"~transport": {"return_route": "all"}}
    calls = [pocket.pack(quiet(pocket) | route) for _ in range(8)]
    for answer in at_once(*[lambda data=data: Agent().post(data) for data in calls]):
        if answer.content:
            pocket.receives(answer.content)
    for _ in range(4):
        pocket.asks(quiet(pocket))
    assert sorted(texts(pocket)) == ["0", "1", "2", "3"]


def test_a_broken_handler_leaves_the_message_to_the_worker(row, pocket, monkeypatch):
    asked = pocket.build(basic_message.MESSAGE, content="Hi")
    with monkeypatch.context() as broken:
        broken.setattr(basic_message, "read_message", lambda *arguments: 1 / 0)
        assert pocket.asks(asked).status_code == 202
    stored = InboundMessage.objects.get(message_id=asked["@id"])
    assert stored.last_error == "internal_error"
    queues.worker_catches_up()
    assert BasicMessage.objects.filter(direction="Incoming").count() == 1


def test_a_reply_of_a_process_that_died_is_fetched_later(row, pocket, monkeypatch):
    asked = pocket.pack({**ping(pocket), "~transport": {"return_route": "all"}})
    with monkeypatch.context() as dying:
        dying.setattr(return_route, "hand_over", lambda received: 1 / 0)
        dying.setattr(outbox, "release_to_worker", lambda row: None)
        assert pocket.post(asked).status_code == 500
    OutboundMessage.objects.filter(status=PENDING).update(lease_until=timezone.now())
    tasks.sweep()
    assert OutboundMessage.objects.get(type=trust_ping.PING_RESPONSE).status == PENDING
    pocket.asks(quiet(pocket))
    assert pocket.newest(trust_ping.PING_RESPONSE)
