"""How far the event feed is behind while sixteen clients run whole cycles.

The feed returns events up to the oldest transaction that has a number and still runs
(webhooks/events/feed.py). `behind` is the time since that number was given: an event
that is committed now is held back until that transaction ends. `oldest` is the time
since the transaction began, its reads and its cryptography included.
"""

import bisect
import statistics
import time

from django.db import connection

from bench import load, product
from bench.cycle import Agency
from bench.rounds import ROUNDS, SECONDS, format_spread
from webhooks.events.feed import current_horizon

CLIENTS = 16
EVERY = 0.01  # seconds between two looks
OLDEST = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)
FROM pg_stat_activity WHERE backend_xid IS NOT NULL
"""


def run():
    behind, oldest = [], []
    with product.run_services(*product.WORKERS) as (url, processes):
        agency = Agency(url, product.process_families(processes))
        clients = agency.clients(CLIENTS)
        for _ in range(ROUNDS):
            watch = Watch()
            load.measure_load("cycle", clients, SECONDS, {}, watch.run)
            behind.append(watch.behind)
            oldest.append(watch.oldest)
    print(f"{CLIENTS} clients, {ROUNDS} rounds of {SECONDS:.0f} s, ms: median (range)")
    for name, rounds in (("behind", behind), ("oldest", oldest)):
        for shown, value in (("p50", statistics.median), ("max", max)):
            found = [1000 * value(one) for one in rounds]
            print(f"{name:8} {shown}  {format_spread(found, '.0f')}")


class Watch:
    """Looks at the running transactions again and again. The lags are in seconds."""

    def __init__(self):
        self.behind, self.oldest = [], []
        # The next free number at each look, which only grows, and the time of the look.
        self.numbers, self.times = [], []

    def run(self, seconds):
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self.look(now)
            time.sleep(max(0.0, now + EVERY - time.monotonic()))

    def look(self, now):
        horizon = current_horizon()
        self.numbers.append(horizon.first_unassigned)
        self.times.append(now)
        self.behind.append(now - self.last_time_without(horizon.first_running))
        with connection.cursor() as cursor:
            cursor.execute(OLDEST)
            self.oldest.append(float(cursor.fetchone()[0]))

    def last_time_without(self, number):
        """The time of the last look at which this number was not yet given."""
        place = bisect.bisect_right(self.numbers, number) - 1
        # Given before the first look: that is all that is known.
        return self.times[max(0, place)]
