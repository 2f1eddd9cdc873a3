"""The loops by which a process works on a queue until nothing is due.

Loop           one row after the other, in the thread that calls run()
ThreadedLoop   several rows at a time, in threads of its own
"""

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event, Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from celery.signals import worker_shutting_down
from django.db import connection

from core.database import clock
from core.work.leases import LEASE, QueuedJob
from core.work.shares import Limits, Shares

logger = logging.getLogger(__name__)
POLL_SECONDS = 1.0  # between two claims while work runs and nobody notifies the loop
# Where work ends quickly and rows wait, results are collected for so long, and recorded
# together.
COLLECT_SECONDS = 0.05
# A row that has waited longer in the process goes back to the table. By then it may
# have been changed, and there must be time for the work before its lease ends.
MAX_WAIT = timedelta(seconds=5)

Row = TypeVar("Row", bound=QueuedJob)
Result = TypeVar("Result")
_loops: "WeakSet[NotifiedLoop]" = WeakSet()


class NotifiedLoop:
    """Works on a queue until nothing is left. One per process and queue."""

    def __init__(self) -> None:
        self.notified = Event()  # there may be something to do
        self.loop_lock = Lock()
        self.is_stopped = False
        _loops.add(self)

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
        """Stop claiming rows. The work that is running is finished."""
        self.is_stopped = True
        self.notified.set()

    def run_loop(self) -> None:
        """Work until nothing is left. Must clear `notified` before it looks."""
        raise NotImplementedError


@worker_shutting_down.connect
def stop_loops(**signal: Any) -> None:
    """Stop all loops of this process."""
    for loop in list(_loops):
        loop.stop()


class Loop(NotifiedLoop, Generic[Row]):
    """Works on one row after the other, so a queue occupies one thread of the process.

    claim: returns the next row, leased to this process; it is given the row before, if
    there was one in this run. work: called with it. What they raise ends the run.
    """

    def __init__(
        self, claim: Callable[[Row | None], Row | None], work: Callable[[Row], object]
    ) -> None:
        super().__init__()
        self.claim = claim
        self.work = work

    def run_loop(self) -> None:
        row: Row | None = None
        while not self.is_stopped:
            self.notified.clear()
            row = self.claim(row)
            if row is None:
                return
            self.work(row)


class RowsAtWork(Generic[Row, Result]):
    """The rows that a process has leased: they wait, are worked on, and are recorded.

    threads: how many are worked on at a time. line_of: rows with the same line start in
    order; the lines take turns. limits_of: the shares of a row. Safe for threads.
    """

    def __init__(
        self,
        threads: int,
        line_of: Callable[[Row], Hashable],
        limits_of: Callable[[Row], Limits],
    ) -> None:
        self._threads = threads
        self._line_of = line_of
        self._limits_of = limits_of
        self._lock = Lock()
        self._waiting: OrderedDict[Hashable, deque[Row]] = OrderedDict()
        # With the shares that it took, which it gives back whatever its limits are then.
        # By id(): a row whose lease ended during the work may be claimed again.
        self._started: dict[int, tuple[Row, Limits]] = {}
        self._shares = Shares()
        self._finished: list[tuple[Row, Result | None]] = []

    def add(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self._waiting.setdefault(self._line_of(row), deque()).append(row)

    def start_next(self) -> Row | None:
        """Return a row to work on now, or None if there is none within its share."""
        self.return_waiting()
        with self._lock:
            if len(self._started) == self._threads:
                return None
            within_shares = (
                (line, rows)
                for line, rows in self._waiting.items()
                if self._shares.have_room(self._limits_of(rows[0]))
            )
            found = next(within_shares, None)
            if found is None:
                return None
            line, rows = found
            row = rows.popleft()
            self._waiting.move_to_end(line)
            if not rows:
                del self._waiting[line]
            limits = self._limits_of(row)
            self._started[id(row)] = row, limits
            self._shares.take(limits)
            return row

    def end(self, row: Row) -> None:
        """Free the thread and the shares of a row on which nobody works any more."""
        with self._lock:
            _, limits = self._started.pop(id(row))
            self._shares.give_back(limits)

    def finish(self, row: Row, result: Result) -> None:
        """Add what came of the work."""
        self.end(row)
        with self._lock:
            self._finished.append((row, result))

    def return_waiting(self, even_new: bool = False) -> None:
        """Finish rows that have waited too long, without a result."""
        soonest_end = clock.now() + LEASE - MAX_WAIT
        with self._lock:
            for line, rows in list(self._waiting.items()):
                while rows and (
                    even_new
                    or not rows[0].lease_until
                    or rows[0].lease_until < soonest_end
                ):
                    self._finished.append((rows.popleft(), None))
                if not rows:
                    del self._waiting[line]

    def take_finished(self) -> list[tuple[Row, Result | None]]:
        """Return what was not recorded yet, and forget it."""
        with self._lock:
            finished = self._finished
            self._finished = []
            return finished

    def all(self) -> list[Row]:
        """The rows whose result is not recorded yet."""
        with self._lock:
            waiting = [row for rows in self._waiting.values() for row in rows]
            finished = [row for row, _ in self._finished]
            started = [row for row, _ in self._started.values()]
            return [*waiting, *started, *finished]

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)


class ThreadedLoop(NotifiedLoop, Generic[Row, Result]):
    """Claims due rows, works on them in threads, and records the results.

    The thread of the loop alone claims and records, so one transaction can do either
    for many rows. Rows that wait for their record are still leased.
    """

    def __init__(self, name: str, threads: int) -> None:
        super().__init__()
        self.name = name
        self.threads = threads
        self.rows = RowsAtWork[Row, Result](threads, self.line_of, self.limits_of)

    def claim(self, at_work: list[Row]) -> list[Row]:
        """Return due rows, leased to this process. at_work: those that it has."""
        raise NotImplementedError

    def work(self, row: Row) -> Result:
        """Work on one row, in a thread. If it raises, the row waits for its lease."""
        raise NotImplementedError

    def record(self, finished: list[tuple[Row, Result | None]]) -> None:
        """Store the results; None for a row that was not worked on."""

    def line_of(self, row: Row) -> Hashable:
        """What keeps the order of its rows, and takes turns with others."""
        return None

    def limits_of(self, row: Row) -> Limits:
        """The shares of a row of those that this process works on at a time."""
        return {}

    def run_loop(self) -> None:
        try:
            with ThreadPoolExecutor(self.threads, self.name) as threads:
                self._run_turns(threads)
        finally:
            # What was running when the loop was stopped, or failed.
            self._record()
            connection.close()

    def _run_turns(self, threads: ThreadPoolExecutor) -> None:
        """Record, claim and start work, until there is none."""
        try:
            while True:
                self.notified.clear()
                try:
                    self.rows.return_waiting(even_new=self.is_stopped)
                    recorded = self._record()
                    if not self.is_stopped:
                        self.rows.add(self.claim(self.rows.all()))
                finally:
                    connection.close()  # back to the pool while the work runs
                while row := self.rows.start_next():
                    future = threads.submit(self._work, row)
                    future.add_done_callback(self._log_error)
                if not self.rows.all():
                    return
                self.notified.wait(POLL_SECONDS)
                # Not where rows wait for work that hangs: it would delay other claims.
                if recorded >= self.threads // 2 and self.rows.are_waiting:
                    time.sleep(COLLECT_SECONDS)
        finally:
            self.rows.return_waiting(even_new=True)

    def _record(self) -> int:
        finished = self.rows.take_finished()
        if finished:
            self.record(finished)
        return len(finished)

    def _work(self, first: Row) -> None:
        """Work on this row, and then on others while there are any to start."""
        row: Row | None = first
        while row is not None:
            try:
                result = self.work(row)
            except BaseException:
                self.rows.end(row)
                raise
            else:
                self.rows.finish(row, result)
            finally:
                connection.close()
                self.notified.set()
            row = self.rows.start_next()

    def _log_error(self, future: Future[None]) -> None:
        if error := future.exception():
            logger.error("%s: a row waits for its lease to end: %r", self.name, error)
