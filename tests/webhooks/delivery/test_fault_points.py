"""Processes killed at the three points where data could be lost, and the result."""

import random
import time

import pytest
import requests
from django.db import connection

from agency.devtools.embedded import valkey
from connections.models import Connection
from tests.support.processes import database_of_test, eventually, processes
from tests.support.webhook_receiver import time_passes
from webhooks.delivery.examples import send_example
from webhooks.events.types import Type
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.timeout(180),
]
KILLED = -9


@pytest.fixture
def product(home):
    """The product's processes beside this test, on its database."""
    broker = valkey.start(home / "valkey", durable=False)
    given = {"DATABASE_URL": database_of_test(), "REDIS_URL": broker}
    with processes(home, **given) as product:
        yield product


@pytest.fixture
def chain(faber, receiver, registers):
    """Two events of one connection, none told yet."""
    registers(messageTypes=["connection_invited", "connection_negotiating"])
    invited = faber.invites(connectionId="office")
    faber.hosts().accepts_invitation(invited["invitation"])
    Delivery.objects.exclude(event__object_id="office").delete()
    assert Delivery.pending().count() == 2 and receiver.calls == []


def sequences_of_calls(receiver):
    return [call.body["sequence"] for call in receiver.calls]


def test_killed_between_commit_and_ringing_the_event_is_found_by_the_sweep(
    faber, receiver, registers, product
):
    registers(messageTypes=["connection_invited"])
    product.start_web(FAULT_POINT="after_commit_before_wake")
    with pytest.raises(requests.ConnectionError):
        faber.at(product.url).invites(connectionId="office")
    assert Connection.objects.get().connection_id == "office"
    assert Delivery.pending().count() == 1 and receiver.calls == []
    product.start("deliver"), product.start("beat")
    eventually(lambda: receiver.calls)
    assert [call.body["object_id"] for call in receiver.calls] == ["office"]


@pytest.fixture
def accepts_and_dies(faber, registers, product):
    """Accepts an invitation in a process that is killed there. Returns both."""

    def accept(fault):
        registers(messageTypes=[str(kind) for kind in Type])
        alice, invited = faber.hosts(), faber.invites(connectionId="office")
        product.start_web(FAULT_POINT=fault)
        with pytest.raises(requests.ConnectionError):
            alice.at(product.url).accepts_invitation(invited["invitation"])
        return alice, invited

    return accept


def test_killed_in_the_middle_of_an_exchange_nothing_of_it_is_left(accepts_and_dies):
    """Both parties are hosted here: what they do in one call is one transaction."""
    alice, invited = accepts_and_dies("inside_handling")
    assert [row.state for row in Connection.objects.all()] == ["Invited"]
    assert Event.objects.count() == Delivery.objects.count() == 1
    alice.accepts_invitation(invited["invitation"])
    assert {row.state for row in Connection.objects.all()} == {"Connected"}


def test_killed_after_an_exchange_all_of_it_is_told(
    accepts_and_dies, receiver, product
):
    """Accepting an invitation is killed after its commit."""
    accepts_and_dies("after_commit_before_wake")
    assert [row.state for row in Connection.objects.all()] == ["Connected"] * 2
    assert product.manage("deliver") == 0
    told = {}
    for call in receiver.calls:
        told.setdefault(call.body["object_id"], []).append(call.body["sequence"])
    assert list(told.values()) == [[1, 2, 3], [1, 2, 3]]
    assert len(receiver.calls) == Event.objects.count() == 6


def test_killed_between_call_and_note_it_calls_again_with_the_same_id_and_bytes(
    receiver, chain, product
):
    assert product.manage("deliver", FAULT_POINT="after_post_before_mark") == KILLED
    assert sequences_of_calls(receiver) == [1]
    assert product.manage("deliver") == 0
    assert sequences_of_calls(receiver) == [1], (
        "its lease holds, and the next waits behind it"
    )
    time_passes(seconds=61)
    assert product.manage("deliver") == 0
    assert sequences_of_calls(receiver) == [1, 1, 2]
    first, again, _ = receiver.calls
    assert first.data == again.data
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert set(Delivery.objects.values_list("status", flat=True)) == {"done"}


def test_killed_while_recording_it_calls_again_and_counts_the_call_once(
    receiver, chain, product
):
    point = "after_outcomes_before_commit"
    assert product.manage("deliver", FAULT_POINT=point) == KILLED
    assert sequences_of_calls(receiver) == [1] and not Attempt.objects.exists()
    time_passes(seconds=61)
    assert product.manage("deliver") == 0
    assert sequences_of_calls(receiver) == [1, 1, 2]
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}
    assert Attempt.objects.count() == 2


def test_killed_anywhere_it_loses_nothing_and_repeats_no_recorded_call(
    receiver, registers, product
):
    """Each worker is killed after a random number of further calls."""
    receiver.meet = lambda call: time.sleep(0.01)
    webhooks = [registers() for _ in range(2)]
    for webhook in webhooks:
        send_examples(webhook, 150)
    recorded, kills = set(), 0
    while Delivery.pending().exists():
        made = len(receiver.calls)
        enough = made + min(Delivery.pending().count(), random.randint(1, 60))
        loop = product.supervisor.start_process("python manage.py deliver --loop")
        try:
            eventually(lambda enough=enough: len(receiver.calls) >= enough)
        finally:
            loop.kill()
            loop.wait(10)
        kills += 1
        later = [call.headers["webhook-id"] for call in receiver.calls[made:]]
        assert not recorded & set(later), "it was recorded, and called again"
        done = Delivery.objects.filter(status="done")
        recorded = {f"msg_{row.event_id}" for row in done}
        time_passes(seconds=61)
    assert kills > 1
    assert {call.headers["webhook-id"] for call in receiver.calls} == recorded
    assert len(recorded) == Attempt.objects.count() == 300
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}


def send_examples(webhook, count):
    row = Webhook.objects.get(pk=webhook["id"])
    for _ in range(count):
        send_example(row, "verification")


def test_killed_after_claiming_it_calls_when_the_lease_is_over(
    receiver, chain, product
):
    assert product.manage("deliver", FAULT_POINT="after_claim") == KILLED
    assert receiver.calls == []
    assert Delivery.pending().exclude(lease_owner=None).count() == 1
    time_passes(seconds=61)
    assert product.manage("deliver") == 0
    assert sequences_of_calls(receiver) == [1, 2]


def test_the_loop_outlives_a_lost_database_and_ends_when_asked(
    faber, receiver, registers, product
):
    registers(messageTypes=["connection_invited"])
    loop = product.supervisor.start_process("python manage.py deliver --loop")
    try:
        faber.invites()
        eventually(lambda: len(receiver.calls) == 1)
        end_connections_of_others()
        faber.invites()
        eventually(lambda: len(receiver.calls) == 2)
        loop.terminate()
        assert loop.wait(30) == 0
    finally:
        loop.kill()


def end_connections_of_others():
    """End all connections, and open those of our own pool again.

    Else the pool would find them broken one by one, and wait longer after each.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] > 0
    connection.pool.drain()
