"""Webhook calls per second to one address, by two `deliver` processes.

The receiver takes 200 ms or 10 ms for each call, on the same processors. Beside it, in
the same round: ten addresses at 10 ms; and one address with `batch`, in events. The
first quarter of the calls is left out: an address earns its share by answering.

    python -m bench address     ROUNDS: see bench/rounds.py; CALLS (4000): of each rate

python -m bench.address is one of the processes: it says `ready`, waits for a line, and
ends when no delivery is pending.
"""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

CALLS = int(os.environ.get("CALLS", "4000"))
PROCESSES = 2
BATCH = 100


def run():
    from unittest import mock

    from django.conf import settings

    from bench.receiver import receiving
    from bench.rounds import AGENCY, ROUNDS, Table
    from tenants.lifecycle.provisioning import create_organization

    table = Table()
    settings.OUTGOING_ALLOW_LOOPBACK = True
    tenant = create_organization("Bench").tenant
    with receiving() as url, mock.patch("webhooks.events.emit.notify_worker"):
        for _ in range(ROUNDS):
            slow = rate(tenant, [f"{url}/after/200"])
            table.add("one address at 200 ms, calls per second", AGENCY, slow)
            ten = rate(tenant, [f"{url}/after/10/{one}" for one in range(10)])
            table.add("ten addresses at 10 ms, calls per second", AGENCY, ten)
            one = rate(tenant, [f"{url}/after/10"])
            table.add("one address at 10 ms, calls per second", AGENCY, one)
            table.add("one address at 10 ms, part of ten", AGENCY, one / ten)
            events = rate(tenant, [f"{url}/after/200"], batch=BATCH)
            table.add(
                f"one address at 200 ms, batch {BATCH}, events per second",
                AGENCY,
                events,
            )
    table.show()
    return table


def rate(tenant, urls, batch=None):
    """Deliveries per second, of CALLS that wait when the processes begin."""
    from datetime import timedelta

    from django.db import connection

    from webhooks.delivery import examples
    from webhooks.models import Attempt, Delivery, Webhook

    webhooks = [
        Webhook.register(tenant, url, Webhook.Type.ZAPIER, "client", batch=batch)
        for url in urls
    ]
    for number in range(CALLS):
        examples.send_example(webhooks[number % len(webhooks)], "verification")
    make_calls()
    if Delivery.objects.filter(status="done").count() != CALLS:
        raise RuntimeError("calls failed")
    rows = Attempt.objects.values_list("started_at", "duration_ms")
    ends = sorted(begun + timedelta(milliseconds=took) for begun, took in rows)
    counted = ends[CALLS // 4 :]
    Webhook.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE webhooks_attempt, webhooks_delivery, webhooks_event")
    return len(counted) / max((counted[-1] - counted[0]).total_seconds(), 0.001)


def make_calls():
    """Run the processes until nothing is pending."""
    command = [sys.executable, "-m", "bench.address"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, text=True, **pipes))
            for _ in range(PROCESSES)
        ]
        for process in processes:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("a process did not start")
        for process in processes:
            process.stdin.write("begin\n")
            process.stdin.flush()


def deliver():
    os.environ["OUTGOING_ALLOW_LOOPBACK"] = "1"
    import django

    django.setup()
    from django.db import connection

    from webhooks.delivery.worker import DeliveryLoop
    from webhooks.models import Delivery

    loop = DeliveryLoop()
    Delivery.pending().exists()
    print("ready", flush=True)
    sys.stdin.readline()
    while Delivery.pending().exists():
        connection.close()
        loop.run()
        time.sleep(0.02)


if __name__ == "__main__":
    deliver()
