"""Processes of two nodes are killed again and again during stories.

No event is lost, sent twice or out of order.

CHAOS_SECONDS (of faults), CHAOS_FAULTS (their number, instead of seconds), CHAOS_PAUSE
(seconds between two steps of the clients) and CHAOS_SEED change a run by hand. The seed
decides what goes wrong and who does what; the machine decides when.
"""

import json
import os
import random
from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise
from threading import Event, Thread

import pytest

from tests.chaos.ledger import Ledger
from tests.chaos.nemesis import Nemesis
from tests.chaos.receivers import receiving
from tests.chaos.stories import Writers, careful
from tests.chaos.world import make_world
from tests.support.pgbouncer import pgbouncer
from tests.support.processes import eventually, own_servers, processes

SECONDS = float(os.environ.get("CHAOS_SECONDS", "35"))
FAULTS = int(os.environ.get("CHAOS_FAULTS", "0"))
PAUSE = float(os.environ.get("CHAOS_PAUSE", "0"))
SEED = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
LONGEST = FAULTS * 12 or SECONDS  # seconds of faults
TO_SETTLE = 120 + LONGEST  # seconds
pytestmark = [
    pytest.mark.timeout(420 + 3 * LONGEST),
    pytest.mark.needs("pgbouncer", "tcc"),
]
# Faber with a holder of its own and one of Acme's; Acme with one of its own.
PARTS = [("Faber", "Faber"), ("Faber", "Acme"), ("Acme", "Acme")]


@pytest.fixture
def servers(home):
    """PostgreSQL as in production: what is committed is on the disk."""
    return own_servers(home, options=())


@pytest.fixture
def receivers():
    with receiving(SEED) as receivers:
        yield receivers


@pytest.fixture
def pooler(home, servers):
    with pgbouncer(servers["DATABASE_URL"], home / "pooler") as pooler:
        yield pooler


@pytest.fixture
def nodes(home, servers, pooler):
    """The second one reaches PostgreSQL through PgBouncer, and has no beat."""
    given = servers | {"LOG_LEVEL": "ERROR"}
    with processes(home, **given, WEB_PROCESSES="2") as one:
        own = {"TMPDIR": str(home / "other"), "PUBLIC_URL": one.url}
        own |= {"STORAGE_ROOT": str(home / "storage"), "DATABASE_URL": pooler.url}
        (home / "other").mkdir()
        with processes(home / "other", **given | own) as other:
            one.start_all("worker", "deliver", "beat")
            other.start_all("worker", "deliver")
            yield one, other


@pytest.fixture
def product(nodes):
    return nodes[0]


@pytest.fixture
def world(product, receivers):
    return make_world(product, receivers.url)


def test_no_event_is_lost(home, servers, nodes, pooler, world, receivers, capsys):
    say(capsys, f"CHAOS_SEED={SEED} CHAOS_SECONDS={SECONDS:.0f} CHAOS_FAULTS={FAULTS}")
    product, other = nodes
    ledger, over = Ledger(servers["DATABASE_URL"]), Event()
    writers = Writers(world, product.url, PARTS, SEED, (other.url,))
    nemesis = Nemesis(product, other, pooler, home, servers["REDIS_URL"], SEED)
    striker = Thread(target=nemesis.strike, args=[over, FAULTS], daemon=True)
    writers.start(PAUSE)
    striker.start()
    striker.join(LONGEST)
    over.set()
    striker.join(180)
    assert not striker.is_alive()
    writers.stop()
    say(capsys, table(nemesis, writers, receivers.calls))
    recover(world, product, receivers, ledger)
    check(world, writers, receivers.calls, ledger)
    check_much_happened(writers, nemesis)
    say(capsys, figures(writers, nemesis, receivers.calls, ledger))


def recover(world, product, receivers, ledger):
    """Let the receivers work again, and recover all events that they missed.

    Their owners enable the disabled webhooks first.
    """
    receivers.heal()
    for name in ("worker", "deliver", "beat"):
        assert product.is_alive(name), f"{name} has ended by itself"
    settle(ledger)
    assert untold(world, ledger, disabled={"gone"}) == set()
    for one in world.values():
        caller = careful(product.url, one["headers"])
        for webhook in one["webhooks"].values():
            caller.put(f"/webhooks/{webhook}/enable")
            since = {"since": "2026-01-01T00:00:00Z", "unconfirmed": True}
            caller.post(f"/webhooks/{webhook}/recover", since)
    # A recovery begins with the next maintenance: until then nothing waits.
    eventually(lambda: is_all_told(world, ledger), TO_SETTLE)
    settle(ledger)


def is_all_told(world, ledger):
    if untold(world, ledger):
        return False
    return set(ledger.deliveries().values()) == {"done"}


def settle(ledger):
    """Time passes until nothing waits."""

    def is_settled():
        ledger.let_time_pass(lease=18)
        return not any(ledger.pending().values())

    try:
        eventually(is_settled, TO_SETTLE)
    except AssertionError:
        pytest.fail(f"This waits for ever:\n{ledger.describe_pending()}")


def untold(world, ledger, disabled=()):
    """The (event, webhook) pairs without a delivery.

    disabled: kinds of webhooks that were disabled in between; they get theirs later.
    """
    known = ledger.deliveries()
    wanted = {
        (event.id, webhook)
        for event in ledger.events()
        for one in world.values()
        for kind, webhook in one["webhooks"].items()
        if event.tenant == one["tenant"] and kind not in disabled
    }
    return wanted - set(known)


def check(world, writers, calls, ledger):
    events, seen, announced = ledger.events(), by_receiver(calls), ledger.announced()
    assert writers.acknowledged() <= announced
    assert writers.visible() <= announced
    for name, one in world.items():
        mine = {
            f"msg_{event.id}": event.body
            for event in events
            if event.tenant == one["tenant"]
        }
        for kind in one["webhooks"]:
            received = seen[f"{name}/{kind}"]
            assert {call.id for call in received if call.status == 200} == set(mine), (
                kind
            )
            assert all(call.data.decode() == mine[call.id] for call in received), kind
            assert out_of_order(received) == [], kind
    assert not seen["trap"], "no redirect was followed"


def check_much_happened(writers, nemesis):
    """So that what was not lost was not nothing."""
    assert {"meet", "offer", "ask", "write", "decline"} <= set(writers.steps())
    assert all(pair.steps["meet"] for pair in writers.pairs)
    assert set(nemesis.faults) == {kind.__name__ for kind in nemesis.kinds}


def by_receiver(calls):
    found = defaultdict(list)
    for call in calls:
        found[call.receiver].append(call)
    return found


def out_of_order(calls):
    """Those whose object had been told of something later before."""
    known, last, wrong = set(), {}, []
    for call in calls:
        body = json.loads(call.data)
        name, number = (body["object_type"], body["object_id"]), body["sequence"]
        if call.id not in known and number <= last.get(name, 0):
            wrong.append((name, last[name], number))
        known.add(call.id)
        last[name] = max(number, last.get(name, 0))
    return wrong


def doubled(calls):
    """Those that came again after a 200."""
    good, found = set(), []
    for call in calls:
        if call.status != 200:
            continue
        if (call.receiver, call.id) in good:
            found.append(call)
        good.add((call.receiver, call.id))
    return found


def table(nemesis, writers, calls):
    """For each kind of fault, until the next one: webhook calls, and answers.

    The longest time in which no client got an answer other than 5xx says something
    about a machine that has nothing else to do.
    """
    begins = [strike.began for strike in nemesis.strikes]
    made = {"calls": calls, "doubled": doubled(calls)}
    moments = {name: sorted(call.at for call in found) for name, found in made.items()}
    answers = sorted(time for one in writers.clients for time in one.answered)
    rows = defaultdict(lambda: {"tries": 0, "calls": 0, "doubled": 0, "silent": 0.0})
    for number, strike in enumerate(nemesis.strikes):
        end = begins[number + 1] if number + 1 < len(begins) else answers[-1]
        row = rows[strike.kind]
        row["tries"] += 1
        for name, found in moments.items():
            row[name] += bisect_left(found, end) - bisect_left(found, strike.began)
        first, last = (bisect_left(answers, one) for one in (strike.began, end))
        within = [strike.began, *answers[first:last], max(end, strike.began)]
        gaps = (later - before for before, later in pairwise(within))
        row["silent"] = max(row["silent"], *gaps)
    head = f"{'fault':22}{'tries':>6}{'calls':>8}{'doubled':>9}{'no answer, s':>14}"
    lines = [
        f"{kind:22}{row['tries']:6}{row['calls']:8}{row['doubled']:9}{row['silent']:14.1f}"
        for kind, row in sorted(rows.items())
    ]
    return "\n".join((head, *lines))


def figures(writers, nemesis, calls, ledger):
    ids = {(call.receiver, call.id) for call in calls}
    lines = {
        "faults": f"{nemesis.faults.total()} {dict(nemesis.faults)}",
        "steps": dict(writers.steps()),
        "requests": dict(writers.counts()),
        "events": len(ledger.events()),
        "deliveries": f"{len(ids)}, of which lost 0, out of order 0",
        "calls": f"{len(calls)}, of which repeated after a 200: {len(doubled(calls))}",
    }
    return "\n".join(f"{name:11}{value}" for name, value in lines.items())


def say(capsys, text):
    with capsys.disabled():
        print(f"\n{text}", flush=True)
