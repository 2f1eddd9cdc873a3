"""How many bytes of the database a flow takes, by table, before and after retention.

    python -m bench sizes [FLOWS]

A flow is a connection between an organization and a wallet hosted here, or a credential
of five attributes that is issued on it and the proof that is verified. A webhook is
subscribed to all events of the original clients; each call succeeds at once. The bytes
are those of tables with their indexes and long values, after VACUUM FULL: a database in
use has free space besides.
"""

from django.conf import settings
from django.db import connection
from django.utils import timezone

import agency.holders.links.closed_links
import connections.retention
import tenants.idempotency
import webhooks.retention
from bench.queries import InProcess
from bench.soak import TABLES, register_for_all
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.models import Tenant
from webhooks.models import Attempt, Delivery

SMALLEST = 20  # bytes of a flow; less is the rounding of pages
COLUMNS = (
    "connection", "credential and proof", "both, after retention",
    "both, without the organization's values",
)  # fmt: skip


def run(flows=200):
    caller = InProcess().prepare()
    caller.cycle()
    register_for_all(caller.tenant, "https://office.example/never-called")
    steps = [
        lambda: make_flows(caller.connection_steps, flows),
        lambda: make_flows(caller.steps, flows),
        forget,
        forget_values,
    ]
    sizes = [read_sizes()]
    for step in steps:
        step()
        sizes.append(read_sizes())
    start, connected, proven, kept, emptied = sizes
    show(
        flows,
        growth(start, connected),
        growth(connected, proven),
        growth(start, kept),
        growth(start, emptied),
    )


def make_flows(steps, flows):
    for _ in range(flows):
        for _ in steps():
            pass
    pending = Delivery.objects.filter(status=Delivery.Status.PENDING)
    now = timezone.now()
    Attempt.objects.bulk_create(
        Attempt(delivery=one, number=1, started_at=now, duration_ms=50, status_code=200)
        for one in pending
    )
    pending.update(status=Delivery.Status.DONE, finished_at=now, calls=1)


def forget():
    """Do what beat's tasks do when the days are over."""
    settings.EVENT_RETENTION_DAYS = settings.MESSAGE_RETENTION_DAYS = 0
    for delete_old in (
        webhooks.retention.delete_old_events,
        connections.retention.forget_messages,
        tenants.idempotency.delete_old_keys,
        agency.holders.links.closed_links.forget_closed_links,
    ):
        while delete_old():
            pass
    Attempt.objects.all().delete()  # as their table, when the day is over


def forget_values():
    """Do what an organization may choose: delete the values of finished exchanges."""
    Tenant.objects.update(values_kept_days=0)
    while delete_old_exchanges():
        pass


def read_sizes():
    """Bytes by table."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("VACUUM FULL")
        cursor.execute(TABLES)
        return dict(cursor.fetchall())


def growth(before, after):
    return {name: size - before[name] for name, size in after.items()}


def show(flows, *columns):
    print(f"bytes of a flow, the mean of {flows:,}")
    print(f"| table | {' | '.join(COLUMNS)} |")
    print(f"|---|{'--:|' * len(COLUMNS)}")
    for name in sorted(columns[0], key=lambda name: -columns[2][name]):
        values = [column[name] / flows for column in columns]
        if max(values) >= SMALLEST:
            show_row(f"`{name}`", values)
    show_row("all", [sum(column.values()) / flows for column in columns])


def show_row(name, values):
    print(f"| {name} | {' | '.join(f'{max(value, 0):,.0f}' for value in values)} |")
