"""Both parties of a connection act at once: at the end both sides agree.

PAIR_ACTS is the number of acts of the slow tests, in which the actors are processes.
"""

import os
from collections import Counter, defaultdict
from itertools import count

import pytest

from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from connections.protocols import basic_message
from connections.transport import inbox
from credentials.models import Credential
from tenants.models import Erasure
from tests.states.pair_actor import Actor, failing_handler
from tests.states.pair_processes import act_in_processes, lines_of_all
from tests.support import queues
from tests.support.erasing import worker_erases
from tests.support.races import threads
from verifications.models import Verification

THREADS = 4
ACTS = int(os.environ.get("PAIR_ACTS", "500"))
# What both sides may end with, if neither has deleted its row.
AGREED = {
    ("Proposed", "Proposed"),
    ("Offered", "Offered"),
    ("Requested", "Requested"),
    ("Issued", "Issued"),
    ("Rejected", "Rejected"),
    ("Accepted", "Accepted"),
}
# What crossed while a message waited as a row and the connection ended: prover and
# verifier, holder and issuer.
CROSSED = {("Accepted", "Rejected"), ("Rejected", "Issued")}
TIMEOUT = 300 + ACTS // 2  # seconds
seeds = count()


@pytest.fixture
def pair(faber):
    alice = faber.hosts("Alice")
    faber.defines("name", "level")
    alice.meets(faber)
    return alice


def act_at_once(acts, is_heavy=True):
    actors = [Actor(next(seeds), acts // THREADS, is_heavy) for _ in range(THREADS)]
    threads([actor.run for actor in actors])
    done = sum((actor.done for actor in actors), Counter())
    assert done, "nothing was done"


def settle():
    for _ in range(20):
        queues.worker_catches_up()
        worker_erases()
        if not OutboundMessage.objects.filter(status="pending").exists():
            break
    for model in (OutboundMessage, InboundMessage, Erasure):
        assert not model.objects.exclude(lease_owner=None).exists(), "a lease is left"
        assert not model.objects.filter(status="pending").exists(), "not delivered"
    lost = OutboundMessage.objects.filter(status="exhausted")
    assert not lost.exclude(last_error="connection_gone").exists()


def sides_agree():
    parted = connections_agree()
    for model in (Credential, Verification):
        first, second = sorted({role for role, _ in model.EVENTS})
        states = {role: dict() for role in (first, second)}
        ended = set()
        for row in model.objects.select_related("connection"):
            assert row.thread_id not in states[row.role], "doubled"
            states[row.role][row.thread_id] = row.state
            if row.connection is None or row.connection.pk in parted:
                assert row.state not in model.OPEN, "the connection has ended"
                ended.add(row.thread_id)
        for thread_id in states[first].keys() & states[second].keys():
            found = states[first][thread_id], states[second][thread_id]
            is_crossed = thread_id in ended and found in CROSSED
            assert is_crossed or found in AGREED, (model, thread_id, found)
        for thread_id in states[first].keys() ^ states[second].keys():
            left = states[first].get(thread_id) or states[second].get(thread_id)
            assert left in ("Rejected", "Issued", "Accepted"), (model, left)


def connections_agree():
    """Return the ids of those that either side has ended or deleted."""
    sides = sides_of_connections()
    parted = set()
    for thread_id, rows in sides.items():
        assert len({row.role for row in rows}) == len(rows), "doubled"
        if len(rows) == 1 or rows[0].left_at or rows[1].left_at:
            parted |= {row.pk for row in rows}
        if len(rows) == 2:
            one, other = rows
            assert bool(one.left_at) == bool(other.left_at), thread_id
            assert {one.state, other.state} == {"Connected"}
    for rows in sides.values():
        if rows[0].pk not in parted:
            for one, other in (rows, reversed(rows)):
                assert one.their_key == other.my_key.verkey
                assert not one.rotation_id, "a rotation was not answered"
    return parted


def sides_of_connections():
    """The rows of each connection that both have or one has, by its thread."""
    sides = defaultdict(list)
    for row in Connection.objects.exclude(thread_id="").select_related("my_key"):
        sides[row.thread_id].append(row)
    return sides


def texts_arrived_once_and_in_order():
    """Also a last text from either side, on each connection that has not ended."""
    sides, parted = sides_of_connections(), connections_agree()
    for rows in sides.values():
        for row in rows:
            if row.pk not in parted:
                basic_message.send_text(row, "last")
    for rows in sides.values():
        for receiver in rows:
            by_actor = defaultdict(list)
            for text in texts(receiver, "Incoming"):
                actor, _, number = text.partition("-")
                by_actor[actor].append(int(number or 0))
            for numbers in by_actor.values():
                assert numbers == sorted(set(numbers)), "doubled or overtaken"
        for sender, receiver in (rows, reversed(rows)) if len(rows) == 2 else ():
            sent, received = texts(sender, "Outgoing"), texts(receiver, "Incoming")
            assert received == (sent[: len(received)] if is_cut(receiver) else sent)


def is_cut(connection):
    """Whether texts may have come too late: they waited as rows, and it was ended."""
    return connection.left_at and OutboundMessage.objects.exists()


def what_was_told_is_there(logs):
    """Each act that an actor's log calls done, unless a later one has deleted it."""
    deleted = {line.split()[1] for line in lines_of_all(logs, "deletes")}
    sequences = {
        str(pk): sequence
        for model in (Connection, Credential, Verification)
        for pk, sequence in model.objects.values_list("pk", "sequence")
    }
    sides = sides_of_connections()
    kept = {
        row.pk: set(texts(row, "Outgoing") + texts(row, "Incoming"))
        for rows in sides.values()
        for row in rows
    }
    for line in lines_of_all(logs, "done"):
        _, act, what, more = line.split()
        if act == "write":
            for row in sides[more]:
                assert what in kept[row.pk] or is_cut(row), line
        elif act in ("delete", "remove"):
            assert what not in sequences, line
        elif what not in deleted:
            assert sequences[what] >= int(more), line
        if act == "end":
            assert not Connection.objects.filter(pk=what, left_at=None).exists()


def texts(connection, direction):
    rows = BasicMessage.objects.filter(connection=connection, direction=direction)
    return [row.unseal_text() for row in rows.order_by("pk")]


def test_both_sides_agree_after_they_acted_at_once(pair):
    act_at_once(48)
    assert not OutboundMessage.objects.exists(), "no handler failed"
    sides_agree()
    texts_arrived_once_and_in_order()


def test_they_agree_too_if_handlers_fail_now_and_then(pair, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(inbox, "handle", failing_handler(1, 0.2))
        act_at_once(60, is_heavy=False)
    assert OutboundMessage.objects.exists(), "some messages became rows"
    settle()
    sides_agree()
    texts_arrived_once_and_in_order()


def test_without_the_lock_of_the_pair_they_do_not_agree(pair, monkeypatch):
    """Each side locks its own row only: the tests above can fail."""
    monkeypatch.setattr(
        "connections.messaging.pair_lock.LOCK_SQL",
        "SELECT unnest(%(ids)s::uuid[]) AS id ",
    )
    monkeypatch.setattr("connections.messaging.pair_lock.FOR_CHANGES", "")
    assert any(disagree_after_acts() for _ in range(60))


def disagree_after_acts():
    """Whether both sides disagree, or could not even finish."""
    try:
        act_at_once(48, is_heavy=False)
        settle()
        sides_agree()
        texts_arrived_once_and_in_order()
    except Exception:
        return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
def test_both_sides_agree_after_many_acts_of_killed_processes(pair, tmp_path):
    logs = act_in_processes(tmp_path, ACTS)
    assert not OutboundMessage.objects.exists(), "no handler failed, nobody waited"
    settle()
    sides_agree()
    what_was_told_is_there(logs)
    texts_arrived_once_and_in_order()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
def test_nothing_is_lost_or_doubled_though_handlers_fail(pair, tmp_path):
    logs = act_in_processes(tmp_path, ACTS, failing=0.1)
    assert OutboundMessage.objects.exists(), "some messages became rows"
    settle()
    sides_agree()
    what_was_told_is_there(logs)
    texts_arrived_once_and_in_order()
