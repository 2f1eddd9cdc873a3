"""Calls of webhooks per second, and the costs of hanging receivers and waiting rows.

Measured are the rates of calls with http and with https, beside the same calls alone,
the delay of other receivers beside one that hangs, the time of a claim
with rows that are not due, and SQL queries. ROUNDS and SECONDS: see bench/rounds.py.
"""

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from bench.receiver import receiving
from bench.rounds import AGENCY, BARE, ROUNDS, SECONDS, Table
from core.net import http
from tenants.lifecycle.provisioning import create_organization
from tests.support import http_endpoints
from webhooks.delivery import call, claim, examples
from webhooks.delivery.worker import MAX_DEPTH, DeliveryLoop
from webhooks.events.emit import emit_event
from webhooks.models import Attempt, Delivery, Event, Webhook

WEBHOOKS = 10
CALLS = 2000  # of one rate
EVERY = 0.05  # seconds between two calls whose delay is measured
SECONDS_OF_DELAYS = min(SECONDS, 12)
NOT_DUE = 500_000  # rows
CLAIMS, CLAIMED = 8, 128  # in a round, and calls of each
FILL = """
INSERT INTO full_one
    (id, created_at, updated_at, status, attempts, due_at, last_error, webhook_id, event_id,
     object_key, sequence, calls)
SELECT uuidv7(), now(), now(), 'pending', 0, now() + interval '1 day', '',
    (array{webhooks}::uuid[])[1 + n % 10], uuidv7(), uuidv7(), 1, 0
FROM generate_series(1, {count}) n
"""


def calls_per_second(scheme):
    """The name of a row. Its bare library is the HTTP client."""
    return f"webhook calls per second, {scheme}"


def run():
    table = Table()
    settings.OUTGOING_ALLOW_LOOPBACK = True
    tenant = create_organization("Bench").tenant
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("webhooks.events.emit.notify_worker") as notify,
    ):
        trusted, _ = http_endpoints.certificate(Path(folder), "localhost")
        settings.OUTGOING_CA_FILE = str(trusted)
        with receiving(Path(folder)) as url:
            compare_rates(table, "https", register_all(tenant, url))
        Webhook.objects.all().delete()
        with receiving() as url:
            webhooks = register_all(tenant, url)
            compare_rates(table, "http", webhooks)
            compare_delays(table, webhooks, f"{url}/hang", notify)
            compare_claims(table, webhooks)
            count_queries(table, tenant)
    table.show()
    return table


def register_all(tenant, url):
    return [register(tenant, f"{url}/{number}") for number in range(WEBHOOKS)]


def register(tenant, url):
    kind, dialect = Webhook.Type.ZAPIER, Webhook.Dialect.CLIENT
    return Webhook.register(tenant, url, kind, dialect, message_types=["verification"])


def forget():
    execute("TRUNCATE webhooks_attempt, webhooks_delivery, webhooks_event")


def happen(tenant):
    """An event that every webhook receives."""
    key = uuid7()
    event = Event(
        tenant=tenant, type="verification", object_type="verification", sequence=1
    )
    event.object_key, event.object_id = key, str(key)
    with transaction.atomic():
        emit_event(event, {})


def send_examples(webhooks, count):
    for number in range(count):
        examples.send_example(webhooks[number % len(webhooks)], "verification")


def count_queries(table, tenant):
    happen(tenant)
    with counted(table, f"an event with {WEBHOOKS} webhooks"):
        happen(tenant)
    with counted(table, "a claim"):
        rows = claim_many()
    call.make_call(rows[0])
    with counted(table, "a call and its record"):
        call.make_call(rows[1])
    forget()


@contextmanager
def counted(table, name):
    with CaptureQueriesContext(connection) as captured:
        yield
    sql = [one["sql"] for one in captured if one["sql"] not in ("BEGIN", "COMMIT")]
    table.add(f"SQL queries of {name}", AGENCY, len(sql))


def compare_rates(table, scheme, webhooks):
    """Beside it, the same calls by as many threads with nothing around them."""
    row = calls_per_second(scheme)
    for _ in range(ROUNDS):
        send_examples(webhooks, CALLS)
        table.add(row, AGENCY, per_second(DeliveryLoop().run))
        table.add(row, BARE, per_second(lambda: call_bare(webhooks)))
        if Delivery.objects.filter(status="done").count() != CALLS:
            raise RuntimeError("calls failed")
        forget()


def per_second(work):
    started = time.perf_counter()
    work()
    return CALLS / (time.perf_counter() - started)


def call_bare(webhooks):
    body = Event.objects.earliest("pk").body.encode()
    urls = [webhooks[number % len(webhooks)].url for number in range(CALLS)]
    with ThreadPoolExecutor(settings.WEBHOOK_THREADS) as threads:
        for answer in threads.map(
            lambda url: http.post(url, body, "application/json"), urls
        ):
            if answer.status != 200:
                raise RuntimeError(answer)


def compare_delays(table, webhooks, hanging, notify):
    """The delay between event and call of nine receivers while the tenth hangs or not.

    The hanging one has answered before. So its calls take the whole timeout, and the
    first ones use all of its share.
    """
    last, well = webhooks[-1], webhooks[-1].url
    for _ in range(ROUNDS):
        Webhook.objects.filter(pk=last.pk).update(
            url=well, strikes=0, has_answered=True
        )
        normal = delays(webhooks, notify)
        Webhook.objects.filter(pk=last.pk).update(url=hanging)
        beside = delays(webhooks, notify)
        for name, number in (("median", 50), ("99th percentile", 99)):
            add_compared(
                table,
                f"delay of a call, {name}",
                percentile(normal, number),
                "beside one that hangs",
                percentile(beside, number),
            )
    Webhook.objects.filter(pk=last.pk).update(url=well, strikes=0)


def add_compared(table, name, alone, condition, beside):
    """Add two times of one round, in milliseconds, and their ratio."""
    table.add(f"{name}, ms", AGENCY, alone)
    table.add(f"{name}, {condition}, ms", AGENCY, beside)
    table.add(f"{name}, {condition}, ratio", AGENCY, beside / alone)


def delays(webhooks, notify):
    """Milliseconds of all receivers but the last, with the Procfile's two threads."""
    dispatcher, end = DeliveryLoop(), time.monotonic() + SECONDS_OF_DELAYS
    with ThreadPoolExecutor(2) as threads:
        notify.side_effect = lambda task: threads.submit(heard, dispatcher)
        for number in range(int(SECONDS_OF_DELAYS / EVERY)):
            send_examples([webhooks[number % WEBHOOKS]], 1)
            due = end - SECONDS_OF_DELAYS + EVERY * (number + 1)
            time.sleep(max(0.0, min(EVERY, due - time.monotonic())))
        dispatcher.stop()
    notify.side_effect = None
    first = Attempt.objects.filter(number=1).exclude(delivery__webhook=webhooks[-1])
    times = first.values_list("started_at", "delivery__created_at")
    found = [(begun - made).total_seconds() * 1000 for begun, made in times]
    forget()
    return found


def heard(dispatcher):
    dispatcher.run()
    connection.close()


def percentile(values, number):
    return statistics.quantiles(values, n=100)[number - 1]


def compare_claims(table, webhooks):
    """Claim in turns from two tables with the same due rows.

    One has other rows too.
    """
    send_examples(webhooks, 40 * WEBHOOKS)
    execute("CREATE TABLE full_one (LIKE webhooks_delivery INCLUDING ALL)")
    execute("INSERT INTO full_one SELECT * FROM webhooks_delivery")
    execute("SET statement_timeout = 0")
    execute(FILL.format(count=NOT_DUE, webhooks=[str(one.pk) for one in webhooks]))
    execute("ANALYZE full_one, webhooks_delivery")
    for _ in range(ROUNDS):
        times = [
            (claim_time(webhooks), swapped(claim_time, webhooks)) for _ in range(CLAIMS)
        ]
        alone, beside = map(statistics.median, zip(*times, strict=True))
        name, condition = f"claim of {CLAIMED} calls", f"beside {NOT_DUE:,} not due"
        add_compared(table, name, alone, condition, beside)
    execute("DROP TABLE full_one")
    forget()


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def swapped(call, *arguments):
    """What a call answers while the two tables have changed names."""
    swap()
    try:
        return call(*arguments)
    finally:
        swap()


def swap():
    execute("ALTER TABLE webhooks_delivery RENAME TO aside")
    execute("ALTER TABLE full_one RENAME TO webhooks_delivery")
    execute("ALTER TABLE aside RENAME TO full_one")


def claim_many(after=None):
    """Claim as a worker does that has seen how quickly the receivers answer."""
    return claim.claim_due(CLAIMED, 4, after, depth=lambda key: MAX_DEPTH)


def claim_time(webhooks):
    """Milliseconds of the second of two claims, which are undone."""
    for _ in range(2):
        started = time.perf_counter()
        with transaction.atomic():
            if len(claim_many(webhooks[0].pk)) != CLAIMED:
                raise RuntimeError("claimed less")
            transaction.set_rollback(True)
    return (time.perf_counter() - started) * 1000
