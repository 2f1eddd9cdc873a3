"""The order of messages posted to other agents, and the limits of slow endpoints."""

import socket
from threading import Thread

import pytest
from django.db import connection
from django.utils import timezone

from connections import tasks
from connections.messaging import outbox
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import basic_message, connections_1_0, handshakes
from connections.transport import delivery, posting_queue
from tests.support.outside_agent import Agent, listening
from tests.support.people import Organization
from tests.support.processes import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def new_worker(settings, monkeypatch):
    """It knows nothing of any endpoint, and may call this machine."""
    settings.OUTGOING_ALLOW_LOOPBACK = True
    monkeypatch.setattr(posting_queue, "endpoints", posting_queue.Endpoints())


def peers(organization, number, endpoint="http://127.0.0.1:1/{}", has_answered=True):
    """Connections to so many agents elsewhere."""
    tenant = organization.tenant
    wallet = tenant.wallets.get(is_organization=True)
    rows = []
    for index in range(number):
        row = Connection(
            tenant=tenant, wallet=wallet, role="inviter", state="Connected"
        )
        row.connection_id, row.my_key = str(row.pk), wallet.create_key()
        row.their_key, row.their_endpoint = Agent().verkey, endpoint.format(index)
        row.answering_endpoint = row.their_endpoint if has_answered else ""
        row.save(force_insert=True)
        rows.append(row)
    return rows


def write_to(rows):
    """A text for each peer, which waits to be sent."""
    for row in rows:
        basic_message.send_text(row, "Hello")


def claimed(at_work=()):
    return posting_queue.claim_due(100, at_work)


def count_of(organization, rows):
    return [row.tenant_id for row in rows].count(organization.tenant.pk)


SAME = "http://127.0.0.1:1/mediator"


def test_an_organization_gets_half_of_the_share_of_an_endpoint(faber, acme):
    write_to(peers(faber, 9, endpoint=SAME) + peers(acme, 6, endpoint=SAME))
    rows = claimed()
    share = posting_queue.FIRST_SHARE
    assert (count_of(faber, rows), count_of(acme, rows)) == (share // 2, share // 2)
    assert claimed(rows) == []
    done = next(row for row in rows if row.tenant_id == acme.tenant.pk)
    answer([done])
    [next_one] = claimed([row for row in rows if row != done])
    assert next_one.tenant_id == acme.tenant.pk, "not of who waits longer"


def answer(rows, seconds=0.1, succeeded=True):
    """The endpoint has answered so many attempts."""
    for row in rows:
        posting_queue.endpoints.record(row.endpoint, seconds, succeeded)
        OutboundMessage.objects.filter(pk=row.pk).update(
            status="done", lease_owner=None
        )


def test_an_endpoint_gets_more_threads_while_it_answers_well(faber, acme):
    """Of one organization: a second one finds room at any time."""
    write_to(peers(faber, 35, endpoint=SAME))
    counts = []
    for _ in range(3):
        counts.append(len(rows := claimed()))
        answer(rows)
    assert counts == [4, 6, 9], "each of the endpoint's answers earns a thread"
    held = claimed()
    write_to(peers(acme, 3, endpoint=SAME))
    assert count_of(acme, claimed(held)) == 3


def test_an_endpoint_gets_three_quarters_of_the_threads_at_most(faber, acme):
    endpoints = posting_queue.endpoints
    endpoints.note_full([SAME])
    for _ in range(100):
        endpoints.record(SAME, 0.1, True)
    assert endpoints.share_of(SAME) == posting_queue.MAX_SHARE == 48
    write_to(peers(faber, 25, endpoint=SAME) + peers(acme, 25, endpoint=SAME))
    assert len(claimed()) == 48


@pytest.mark.parametrize(
    ("seconds", "succeeded"), [(0.1, False), (posting_queue.SLOW_SECONDS, True)]
)
def test_an_endpoint_loses_half_of_them_when_it_does_not(seconds, succeeded):
    endpoints = posting_queue.endpoints
    endpoints.note_full([SAME])
    for _ in range(10):
        endpoints.record(SAME, 0.1, True)
    assert endpoints.share_of(SAME) == posting_queue.FIRST_SHARE + 10
    endpoints.record(SAME, seconds, succeeded)
    assert endpoints.share_of(SAME) == posting_queue.FIRST_SHARE + 5


def test_an_endpoint_that_never_uses_its_share_up_gets_no_more(faber):
    for _ in range(3):
        write_to(peers(faber, 2, endpoint=SAME))
        answer(claimed())
    assert posting_queue.endpoints.share_of(SAME) == posting_queue.FIRST_SHARE


def test_a_thread_that_waits_for_an_endpoint_holds_no_session(faber, monkeypatch):
    """There are more threads than sessions."""
    held = []
    post = delivery.http.post

    def noted(*arguments, **named):
        held.append(connection.connection is not None)
        return post(*arguments, **named)

    monkeypatch.setattr(delivery.http, "post", noted)
    write_to(peers(faber, 1))
    tasks.deliver()
    assert held == [False]


def test_an_organization_gets_half_and_leaves_the_rest_to_others(faber, acme):
    write_to(peers(faber, 34) + peers(acme, 2))
    rows = claimed()
    assert count_of(faber, rows) == posting_queue.PER_TENANT == 32
    assert count_of(acme, rows) == 2
    assert claimed(rows) == [], "its share is at work"
    taken = {row.pk for row in rows}
    assert not taken & {row.pk for row in claimed()}, "nor does another process"


def test_who_never_answered_shares_a_quarter_by_organization(faber, acme):
    """Phones that just connected get replies while tarpits use the other share."""
    third = peers(Organization("Third"), 10, has_answered=False)
    others = [*peers(faber, 10, has_answered=False), *third]
    [proven] = peers(acme, 1)
    write_to([*others, proven])
    rows = claimed()
    unproven = [row for row in rows if not row.endpoint_has_answered]
    assert len(unproven) == posting_queue.FOR_SLOW == 16
    assert count_of(faber, unproven) == posting_queue.SLOW_PER_TENANT == 8
    assert proven.pk in {row.connection_id for row in rows}
    assert claimed(rows) == []


def test_an_endpoint_that_was_slow_three_times_gets_one_thread(faber):
    endpoints = posting_queue.endpoints
    write_to(peers(faber, 3, endpoint=SAME))
    for _ in range(posting_queue.SLOW_ATTEMPTS):
        endpoints.record(SAME, posting_queue.SLOW_SECONDS, True)
    assert len(claimed()) == 1
    endpoints.record(SAME, 0.1, True)
    assert not endpoints.is_slow(SAME)


def test_an_endpoint_has_three_seconds_until_it_has_answered(faber, monkeypatch):
    """A connection that answers is waited for as long as any call from then on."""
    timeouts = []
    post = delivery.http.post

    def noted(*arguments, timeout, **named):
        timeouts.append(timeout)
        return post(*arguments, timeout=timeout, **named)

    monkeypatch.setattr(delivery.http, "post", noted)
    with listening(Agent()) as agent:
        row = agent.connects(faber)
        basic_message.send_text(Connection.objects.get(pk=row.pk), "Hello")
        tasks.deliver()
    assert timeouts[0] == delivery.FIRST_TIMEOUT_SECONDS
    assert timeouts[-1] == delivery.http.TIMEOUT_SECONDS
    assert Connection.objects.get(pk=row.pk).answering_endpoint == agent.endpoint


def test_tarpits_of_strangers_do_not_hold_up_others(faber, acme, monkeypatch):
    """The neighbour's message arrives while all calls of the tarpits are open."""
    monkeypatch.setattr(delivery, "FIRST_TIMEOUT_SECONDS", 8.0)
    with (
        socket.create_server(("127.0.0.1", 0), backlog=64) as tarpit,
        listening(Agent()) as friend,
    ):
        mine = friend.connects(acme)
        place = f"http://127.0.0.1:{tarpit.getsockname()[1]}/{{}}"
        held = peers(faber, 12, endpoint=place, has_answered=False)
        write_to(held)
        open_calls = OutboundMessage.objects.filter(
            connection__in=held, lease_owner__isnull=False
        )
        worker = Thread(target=tasks.deliver, daemon=True)
        worker.start()
        eventually(lambda: open_calls.count() == posting_queue.SLOW_PER_TENANT)
        basic_message.send_text(Connection.objects.get(pk=mine.pk), "Hello")
        posting_queue.loop.run()  # which only tells the worker
        eventually(lambda: friend.inbox[-1].body.get("content") == "Hello")
        assert open_calls.count() == posting_queue.SLOW_PER_TENANT, (
            "the tarpits hold their calls still"
        )
        assert not OutboundMessage.objects.filter(
            connection__in=held, attempts__gt=0
        ).exists()
    posting_queue.loop.stop()
    worker.join(30)
    posting_queue.loop.is_stopped = False


class Strangers:
    """Agents that answer a multi-party invitation, and where nothing listens."""

    def __init__(self, organization):
        identifier = organization.invites(multiParty=True)["connectionId"]
        self.invitation = Connection.objects.get(connection_id=identifier).invitation

    def come(self, number):
        for _ in range(number):
            agent = Agent()
            agent.endpoint = f"http://127.0.0.1:1/{agent.verkey}"
            self.ask(agent)
        tasks.sweep()  # and nothing is posted

    def ask(self, agent):
        body = connections_1_0.build_request("Phone", "", agent.party, agent.prefix)
        agent.post(agent.pack(body, to=self.invitation["recipientKeys"][0]))

    def undelivered(self):
        rows = OutboundMessage.objects.filter(status="pending").order_by("pk")
        return [row.recipient_key for row in rows]


@pytest.fixture
def strangers(faber, monkeypatch):
    monkeypatch.setattr(outbox, "MAX_UNDELIVERED", 3)
    return Strangers(faber)


def test_beyond_the_limit_a_request_waits_until_an_answer_was_tried(strangers):
    strangers.come(3)
    before = strangers.undelivered()
    strangers.come(1)
    [waiting] = InboundMessage.objects.filter(status="pending")
    assert waiting.last_error == "too_many_undelivered"
    assert strangers.undelivered() == before and len(before) == 3
    OutboundMessage.objects.filter(recipient_key=before[1]).update(attempts=1)
    InboundMessage.objects.filter(pk=waiting.pk).update(due_at=timezone.now())
    tasks.sweep()
    assert strangers.undelivered() == [before[0], before[2], waiting.sender_key]
    given_up = OutboundMessage.objects.get(recipient_key=before[1])
    assert given_up.status == "exhausted"
    assert given_up.last_error == "too_many_undelivered"


def test_an_answer_that_nobody_fetches_makes_room_after_a_minute(strangers):
    strangers.come(3)
    before = strangers.undelivered()
    past = timezone.now() - 2 * handshakes.UNFETCHED_RESPONSE_GRACE
    OutboundMessage.objects.update(created_at=past)
    strangers.come(1)
    assert strangers.undelivered() == before, "those with an endpoint wait to be posted"
    OutboundMessage.objects.filter(recipient_key=before[0]).update(endpoint="")
    strangers.come(1)
    after = strangers.undelivered()
    assert after[:2] == before[1:] and len(after) == 3


def test_what_waits_for_phones_or_another_invitation_is_not_given_up(faber, strangers):
    strangers.come(2)
    known = Connection.objects.filter(their_key__in=strangers.undelivered())
    known.update(state="Connected")
    write_to(known)
    OutboundMessage.objects.update(attempts=1)
    strangers.come(1)
    assert len(strangers.undelivered()) == 5
    Strangers(faber).come(3)
    assert len(strangers.undelivered()) == 8


def test_a_stranger_who_asks_again_and_again_meets_the_limit(strangers):
    strangers.come(2)
    agent = Agent()
    agent.endpoint = "http://127.0.0.1:1/again"
    for _ in range(3):
        strangers.ask(agent)
    tasks.sweep()
    assert strangers.undelivered().count(agent.verkey) == 1


def test_a_message_that_waited_too_long_for_a_thread_is_given_back(faber):
    write_to(peers(faber, 1))
    [row] = claimed()
    assert not OutboundMessage.due().exists(), "it is leased"
    posting_queue.loop.record([(row, None)])
    assert OutboundMessage.due().get() == row
