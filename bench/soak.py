"""Whole cycles by sixteen clients for many minutes: does anything grow?

    python -m bench soak MINUTES

Each minute: memory of each process (what only it uses), open database connections, and
the size of tables. At the end, by how much each grows in an hour. A webhook receives
all events, so that the workers have work too. Events, deliveries and messages are kept
for 0 days here: what retention deletes must not grow, while connections, credentials
and verifications grow with each cycle.
"""

import statistics
import time
from collections import defaultdict

import psutil
from django.conf import settings
from django.db import connection

from bench import load, product
from bench.cycle import Agency
from bench.deliveries import register
from bench.receiver import receiving
from bench.stream import database_connections
from webhooks.events.types import CLIENTS as EVENT_TYPES

CLIENTS = 16
MINUTE = 60  # seconds
WARM_UP = 0.2  # of the minutes, which count for no slope
KEPT_DAYS = {"EVENT_RETENTION_DAYS": "0", "MESSAGE_RETENTION_DAYS": "0"}
BOUNDED = (
    "webhooks_event", "webhooks_delivery",
    "connections_inboundmessage", "connections_outboundmessage",
)  # fmt: skip
# The attempts of webhooks are not among them: they go by whole days.
TABLES = """
SELECT coalesce(inhparent::regclass::text, relname), sum(pg_total_relation_size(oid))::bigint
FROM pg_class LEFT JOIN pg_inherits ON inhrelid = oid
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY 1
"""


def run(minutes=30):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with (
        receiving() as hook,
        product.run_services(*product.WORKERS, **KEPT_DAYS) as (url, processes),
    ):
        agency = Agency(url, product.process_families(processes))
        register_for_all(agency.callers[0].tenant, hook)
        history = defaultdict(list)
        with load.repeat_story("cycle", agency.clients(CLIENTS)) as clients:
            started = time.monotonic()
            for minute in range(1, minutes + 1):
                wait_until(started + minute * MINUTE, clients, processes)
                show_minute(minute, history, read_figures(processes))
            times = [one for process in clients for one in load.finish_clients(process)]
        done = sum(ended > started for _, ended in times)
        print(f"{done} cycles, {done / (minutes * MINUTE):.2f} per second")
        show_slopes(history)


def register_for_all(tenant, url):
    """Register a webhook that wants all events."""
    webhook = register(tenant, url)
    webhook.message_types = [str(one) for one in EVENT_TYPES]
    webhook.save()


def wait_until(end, clients, processes):
    while (left := end - time.monotonic()) > 0:
        processes.raise_if_ended()
        if any(client.poll() is not None for client in clients):
            raise RuntimeError("a client failed")
        time.sleep(min(1, left))


def read_figures(processes):
    """The figures of this moment by name: MB, and numbers of connections."""
    found = {}
    for name, service in processes.services.items():
        for number, one in enumerate(load.process_tree(psutil.Process(service.pid))):
            found[f"{name} {number}, MB"] = own_memory(one)
    [postgres] = product.server_processes()["postgres"]
    backends = [own_memory(one) for one in load.process_tree(postgres)]
    found["postgres, MB"] = sum(backends)
    found["database connections"] = database_connections()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        sizes = {name: size / 1e6 for name, size in cursor.fetchall()}
    for name in BOUNDED:
        found[f"{name}, MB"] = sizes.pop(name)
    found["other tables, MB"] = sum(sizes.values())
    return found


def own_memory(process):
    """The memory that only this process uses, in MB."""
    try:
        return process.memory_full_info().uss / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def show_minute(minute, history, found):
    for name, value in found.items():
        history[name].append((minute, value))
    shown = "  ".join(f"{name} {value:.0f}" for name, value in found.items())
    print(f"minute {minute}: {shown}", flush=True)


def show_slopes(history):
    print(f"{'':34}{'first':>8}{'last':>8}{'in an hour':>12}")
    for name, points in history.items():
        kept = points[int(len(points) * WARM_UP) :]
        slope = 0.0
        if len(kept) > 1:
            slope = 60 * statistics.linear_regression(*zip(*kept, strict=True)).slope
        first, last = points[0][1], points[-1][1]
        print(f"{name:34}{first:8.0f}{last:8.0f}{slope:+12.1f}")
