"""The delay of transitions while old events are deleted, beside transitions alone."""

import statistics
import subprocess
import sys
import time

from django.db import connection

from bench.deliveries import forget, percentile, register
from connections.models import Connection
from connections.protocols import handshakes
from core.states import move
from core.work import transactions
from tenants.lifecycle.provisioning import create_organization

ROUNDS = 3
OLD = 60_000  # events, each with a delivery and an attempt
SECONDS, EVERY = 12, 0.002  # of transitions, one each so many seconds
FORGETS = """
import django
django.setup()
from webhooks import retention
input()
while retention.delete_old_events():
    pass
"""
FILL = """
INSERT INTO webhooks_event
    (id, created_at, updated_at, tenant_id, type, object_type, object_key, object_id, sequence,
     body, is_example, transaction_id)
SELECT uuidv7(interval '-40 days'), now(), now(), '{tenant}', 'verification', 'verification',
    uuidv7(), 'old', 1, repeat('x', 400), false, 1
FROM generate_series(1, {count});
INSERT INTO webhooks_delivery
    (id, created_at, updated_at, status, attempts, due_at, last_error, webhook_id, event_id,
     object_key, sequence, calls)
SELECT uuidv7(interval '-40 days'), now(), now(), 'done', 0, now(), '', '{webhook}', id,
    object_key, 1, 1
FROM webhooks_event WHERE object_id = 'old';
INSERT INTO webhooks_attempt (id, delivery_id, number, started_at, duration_ms, error)
SELECT uuidv7(interval '-40 days'), id, 1, now(), 1, '' FROM webhooks_delivery;
ANALYZE webhooks_event; ANALYZE webhooks_delivery; ANALYZE webhooks_attempt
"""


def run():
    made = create_organization("Bench")
    webhook = register(made.tenant, "https://office.example/never-called")
    row = handshakes.invite(made.tenant.wallets.get(), "office")
    rounds = [measure(made.tenant, webhook, row) for _ in range(ROUNDS)]
    for name, number in (("median", 50), ("99th percentile", 99)):
        pairs = [[percentile(one, number) for one in both] for both in rounds]
        quiet, beside = (
            statistics.median(column) for column in zip(*pairs, strict=True)
        )
        ratio = statistics.median(two / one for one, two in pairs)
        print(
            f"{name:15} of a transition {quiet:6.1f} ms, beside forgetting "
            f"{beside:6.1f} ms"
        )
        print(
            f"ratio                           {ratio:6.2f}   (median of "
            f"{ROUNDS} rounds)"
        )


def measure(tenant, webhook, row):
    """Milliseconds of transitions alone, and beside the forgetting of OLD events."""
    execute(FILL.format(tenant=tenant.pk, webhook=webhook.pk, count=OLD))
    command = [sys.executable, "-c", FORGETS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        time.sleep(5)  # until it has started
        quiet = transitions(row, lambda: False)
        process.stdin.write("\n")
        process.stdin.flush()
        started, left = time.monotonic(), rows()
        beside = transitions(row, lambda: process.poll() is not None)
        rate = (left - rows()) / (time.monotonic() - started)
        process.kill()
    print(f"forgotten: {rate:6.0f} rows per second")
    forget()
    Connection.objects.filter(pk=row.pk).update(sequence=0)
    return quiet, beside


def rows():
    with connection.cursor() as cursor:
        counts = (f"(SELECT count(*) FROM webhooks_{name})" for name in TABLES)
        cursor.execute(f"SELECT {' + '.join(counts)}")
        return cursor.fetchone()[0]


TABLES = ("event", "delivery", "attempt")


def transitions(row, is_over):
    """A move of one object and its event with a delivery, again and again.

    It stays where it is, which no connection does, so that it can go on.
    """
    found, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end and not is_over():
        started = time.perf_counter()
        with transactions.atomic():
            locked = row.lock()
            locked.TRANSITIONS = {("inviter", "Invited"): {"Invited"}}
            move(locked, ["Invited"], "Invited")
        found.append((time.perf_counter() - started) * 1000)
        time.sleep(EVERY)
    return found


def execute(statements):
    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(f"SET statement_timeout = 0; {statement}")
