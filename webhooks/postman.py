"""The loop of a process that calls webhooks: claims as many as it has free threads."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from uuid import UUID

from django.conf import settings
from django.db import connection

from agency import faults
from webhooks import sending
from webhooks.deliveries import Delivery

logger = logging.getLogger(__name__)
LOOK_AGAIN = 1.0  # seconds, while calls are at work and nobody rings


class Postman:
    """Works while there is something to do. One for each process; any thread may ring."""

    def __init__(self) -> None:
        self.bell, self.turn = Event(), Lock()
        self.ends = False
        self.at_work: dict[Future[None], Delivery] = {}
        self.last: UUID | None = None

    def ring(self) -> None:
        """Sees to it that what is due now is called: by the caller, unless another is at it."""
        self.bell.set()
        while self.bell.is_set() and not self.ends and self.turn.acquire(blocking=False):
            try:
                self.work()
            finally:
                self.turn.release()

    def end(self) -> None:
        """Takes nothing new; what is at work is finished."""
        self.ends = True
        self.bell.set()

    def work(self) -> None:
        """Until nothing is due and nothing at work."""
        with ThreadPoolExecutor(settings.WEBHOOK_THREADS, "webhooks") as threads:
            while not self.ends:
                self.bell.clear()
                self.forget_done()
                for row in self.claim():
                    future = threads.submit(send, row)
                    self.at_work[future] = row
                    future.add_done_callback(lambda _: self.bell.set())
                if not self.at_work:
                    return
                self.bell.wait(LOOK_AGAIN)
        self.forget_done()

    def claim(self) -> list[Delivery]:
        free = settings.WEBHOOK_THREADS - len(self.at_work)
        if not free:
            return []
        hanging = sum(row.webhook.is_hanging for row in self.at_work.values())
        rows = sending.claim(free, max(0, sending.share() - hanging), self.last)
        connection.close()
        if rows:
            self.last = rows[-1].webhook_id
            faults.point("after_claim")
        return rows

    def forget_done(self) -> None:
        for future in [one for one in self.at_work if one.done()]:
            row = self.at_work.pop(future)
            if error := future.exception():
                logger.error("delivery %s waits for its lease: %r", row.pk, error)


def send(row: Delivery) -> None:
    try:
        sending.send(row)
    finally:
        connection.close()
