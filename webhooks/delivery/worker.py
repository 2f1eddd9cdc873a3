"""The worker's loop that calls webhooks."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.conf import settings
from django.db import connection

from core import faults
from core.work.dispatcher import NotifiedLoop
from webhooks.delivery.call import call_webhook
from webhooks.delivery.call_queue import ALL_CALLS, CallQueue, CallTimes
from webhooks.delivery.claim import claim_due, per_webhook_limit
from webhooks.delivery.models import Delivery
from webhooks.delivery.recording import record_all

POLL_SECONDS = 1.0  # between two claims while calls run and nobody notifies the loop
# Where calls end quickly and others wait, outcomes are collected for so long, and
# recorded together.
COLLECT_SECONDS = 0.05


class DeliveryLoop(NotifiedLoop):
    """Claims due deliveries, calls their webhooks in threads, records the outcomes.

    The thread of the loop alone claims and records: many rows in one transaction.
    Deliveries that wait for their record are still leased, and block later ones of
    their objects.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = settings.WEBHOOK_THREADS
        self.queue = CallQueue(self.threads)
        self.times = CallTimes()
        self.last_webhook_id: UUID | None = None
        self.recorded = 0  # outcomes in the last turn

    def run_loop(self) -> None:
        try:
            with ThreadPoolExecutor(self.threads, "webhooks") as threads:
                self._work(threads)
        finally:
            # Calls that were running when the loop was stopped, or failed.
            self._record()
            connection.close()

    def _work(self, threads: ThreadPoolExecutor) -> None:
        """Record, claim and start calls, until there are none."""
        try:
            while True:
                self.notified.clear()
                try:
                    self.queue.return_waiting(even_new=self.is_stopped)
                    self._record()
                    if not self.is_stopped:
                        self._claim()
                finally:
                    connection.close()  # back to the pool while the calls run
                while delivery := self.queue.start_next():
                    threads.submit(self._call, delivery)
                if not self.queue.at_work():
                    return
                self.notified.wait(POLL_SECONDS)
                # Not where calls wait for one that hangs: it would delay other claims.
                if self.recorded >= self.threads // 2 and self.queue.has_waiting:
                    time.sleep(COLLECT_SECONDS)
        finally:
            self.queue.return_waiting(even_new=True)

    def _claim(self) -> None:
        """Lease due deliveries and add them to the queue, as many as there is room for.

        There is room for `depth` deliveries for each thread: where calls end quickly,
        several are leased ahead. claim_due() commits the leases.
        """
        at_work = self.queue.at_work()
        free = self.threads * self.times.depth(ALL_CALLS) - len(at_work)
        slow = sum(delivery.webhook.is_slow for delivery in at_work)
        if free <= 0:
            return
        rows = claim_due(
            free,
            slow_limit=max(0, per_webhook_limit() - slow),
            after=self.last_webhook_id,
            # Which leased rows are ours, of all that claim_due() counts.
            owners={delivery.lease_owner for delivery in at_work},
            depth=self.times.depth,
        )
        if rows:
            self.last_webhook_id = rows[-1].webhook_id
            faults.fault_point("after_claim")
            self.queue.add(rows)

    def _record(self) -> None:
        finished = self.queue.take_finished()
        self.recorded = len(finished)
        for delivery, outcome in finished:
            if outcome and outcome.was_made:
                self.times.record(delivery, outcome.seconds)
        if finished:
            record_all(finished)

    def _call(self, first: Delivery) -> None:
        """Make this call, and then others while there are any to make."""
        delivery: Delivery | None = first
        while delivery:
            outcome = call_webhook(delivery)
            self.queue.finish(delivery, outcome)
            self.notified.set()
            delivery = self.queue.start_next()
