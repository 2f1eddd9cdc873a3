"""The loop of a process that makes calls for queued rows: claims as many as it has free threads."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Generic, TypeVar

from django.db import connection

from agency.core.queued_jobs import QueuedJob

logger = logging.getLogger(__name__)
POLL_SECONDS = 1.0  # between claims while calls are at work and nobody asks for one

Row = TypeVar("Row", bound=QueuedJob)


class Dispatcher(Generic[Row]):
    """Works while there is something to do. One for each process and queue; any thread may ask it.

    claim: given the free threads (at least one) and the rows at work, answers rows that are now
    leased to us. send: makes the call for one of them, in a thread, and never raises.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        claim: Callable[[int, Sequence[Row]], list[Row]],
        send: Callable[[Row], None],
    ) -> None:
        self.name, self.threads = name, threads
        self.claim, self.send = claim, send
        self.wanted, self.turn = Event(), Lock()
        self.ends = False
        self.at_work: dict[Future[None], Row] = {}

    def run(self) -> None:
        """Makes the calls that are due: by this thread, unless another one runs the loop."""
        self.wanted.set()
        while (
            self.wanted.is_set() and not self.ends and self.turn.acquire(blocking=False)
        ):
            try:
                self._work()
            finally:
                self.turn.release()

    def end(self) -> None:
        """Takes nothing new; what is at work is finished."""
        self.ends = True
        self.wanted.set()

    def _work(self) -> None:
        with ThreadPoolExecutor(self.threads, self.name) as threads:
            while not self.ends:
                self.wanted.clear()
                self._forget_done()
                for row in self._claim():
                    future = threads.submit(self._send, row)
                    self.at_work[future] = row
                    future.add_done_callback(lambda _: self.wanted.set())
                if not self.at_work:
                    return
                self.wanted.wait(POLL_SECONDS)
        self._forget_done()

    def _claim(self) -> list[Row]:
        free = self.threads - len(self.at_work)
        try:
            return self.claim(free, list(self.at_work.values())) if free else []
        finally:
            connection.close()

    def _send(self, row: Row) -> None:
        try:
            self.send(row)
        finally:
            connection.close()

    def _forget_done(self) -> None:
        for future in [one for one in self.at_work if one.done()]:
            row = self.at_work.pop(future)
            if error := future.exception():
                logger.error("%s %s waits for its lease: %r", self.name, row.pk, error)
