"""The loop of a process that sends queued rows with a bounded number of threads."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Generic, TypeVar

from django.db import connection

from core.work.leases import QueuedJob

logger = logging.getLogger(__name__)
POLL_SECONDS = 1.0  # between two claims while calls run and nobody notifies the loop

Row = TypeVar("Row", bound=QueuedJob)


class NotifiedLoop:
    """Works on a queue until nothing is left, in one thread of this process."""

    def __init__(self) -> None:
        self.notified = Event()  # there may be something to do
        self.loop_lock = Lock()
        self.is_stopped = False

    def run(self) -> None:
        """Do all work that is due in this thread, unless another thread runs the loop.

        May be called from any thread. A loop that is already running looks for work
        again.
        """
        self.notified.set()
        # A notification may come after the loop has ended, while its thread still
        # holds the lock. So that thread checks again after it has released the lock.
        while (
            self.notified.is_set()
            and not self.is_stopped
            and self.loop_lock.acquire(blocking=False)
        ):
            try:
                self.run_loop()
            finally:
                self.loop_lock.release()

    def stop(self) -> None:
        """Stop claiming rows. Calls that are running are finished."""
        self.is_stopped = True
        self.notified.set()

    def run_loop(self) -> None:
        """Work until nothing is left. Must clear `notified` before it looks."""
        raise NotImplementedError


class Dispatcher(NotifiedLoop, Generic[Row]):
    """Claims due rows and sends them until none are left. One per process and queue.

    claim: called with the number of free threads (at least one) and the running rows;
    returns new rows, leased to this process. send: processes one row in a thread and
    never raises.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        claim: Callable[[int, Sequence[Row]], list[Row]],
        send: Callable[[Row], None],
    ) -> None:
        super().__init__()
        self.name = name
        self.threads = threads
        self.claim = claim
        self.send = send
        self.running: dict[Future[None], Row] = {}

    def run_loop(self) -> None:
        with ThreadPoolExecutor(self.threads, self.name) as threads:
            while not self.is_stopped:
                self.notified.clear()
                self._remove_finished()
                for row in self._claim_rows():
                    future = threads.submit(self._send_row, row)
                    self.running[future] = row
                    future.add_done_callback(lambda _: self.notified.set())
                if not self.running:
                    return
                self.notified.wait(POLL_SECONDS)
        self._remove_finished()

    def _claim_rows(self) -> list[Row]:
        free = self.threads - len(self.running)
        try:
            return self.claim(free, list(self.running.values())) if free else []
        finally:
            connection.close()  # back to the pool while the calls run

    def _send_row(self, row: Row) -> None:
        try:
            self.send(row)
        finally:
            connection.close()

    def _remove_finished(self) -> None:
        for future in [future for future in self.running if future.done()]:
            row = self.running.pop(future)
            if error := future.exception():
                logger.error(
                    "%s %s waits for its lease to end: %r", self.name, row.pk, error
                )
