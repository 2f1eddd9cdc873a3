"""Threads shared out fairly: work waits its turn on the event loop, not in a thread."""

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
_thread = threading.local()


def lower_priority(niceness: int) -> None:
    """Of this thread alone, where threads have priorities of their own."""
    if niceness and sys.platform == "linux":
        thread = threading.get_native_id()
        usual = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(19, usual + niceness))


@contextmanager
def idle_thread() -> Iterator[None]:
    """For a block that only waits and needs no processor, such as one for a ledger's reply.

    Meanwhile the call does not count towards the `max_busy` of its caller. Does nothing in a
    thread that belongs to no lane.
    """
    count_idle = getattr(_thread, "count_idle", None)
    if count_idle is None:
        yield
        return
    count_idle(+1)
    try:
        yield
    finally:
        count_idle(-1)


class RecentCallers:
    """Who has called within the last second."""

    SECONDS = 1.0

    def __init__(self) -> None:
        self._called_at: dict[str, float] = {}  # oldest first

    def add(self, caller: str) -> None:
        self._called_at.pop(caller, None)
        self._called_at[caller] = time.monotonic()
        self._forget_old()

    def has_others_than(self, caller: str) -> bool:
        self._forget_old()
        return len(self._called_at) > (caller in self._called_at)

    def _forget_old(self) -> None:
        end = time.monotonic() - self.SECONDS
        while self._called_at:
            oldest = next(iter(self._called_at))
            if self._called_at[oldest] > end:
                return
            del self._called_at[oldest]


class TurnRefused(Exception):
    """The work got no thread in time, or too much of the same caller's waits already."""


class Lane:
    """A pool of threads for the work of many callers.

    Work starts in order of arrival, with one exception: while work of several callers waits, that
    of a caller who already has half of the threads stands back. A caller alone may use all of
    them. To be used from one event loop.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        *,
        max_waiting: int,
        timeout: float,
        niceness: int = 0,
        max_busy: int | None = None,
        recent: RecentCallers | None = None,
    ) -> None:
        """max_waiting: calls of one caller that may wait at a time. timeout: seconds to wait.
        niceness: added to that of the process, for the threads of this lane.
        max_busy: calls of one caller that may run at a time while `recent` knows of other
        callers, even if threads are free; those in `idle_thread` do not count. None: any number.
        """
        self.pool = ThreadPoolExecutor(
            threads, name, initializer=lower_priority, initargs=[niceness]
        )
        self.free = threads
        self.share = max(1, threads // 2)
        self.max_waiting = max_waiting
        self.timeout = timeout
        self.max_busy = max_busy
        self.recent = recent or RecentCallers()
        self.running: Counter[str] = Counter()
        self.idle_by: Counter[str] = Counter()
        self.waiting: dict[asyncio.Future[None], str] = {}
        self.waiting_by: Counter[str] = Counter()

    async def run(
        self,
        caller: str,
        work: Callable[[], T],
        gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> T:
        """The result of `work`, called in a thread.

        gone: returns when the caller has left. It is asked only while the work waits; work that
        has begun goes on. Raises TurnRefused if `work` was never called.
        """
        if self.free and not self.waiting and self._may_start(caller):
            self._start(caller)
        else:
            await self._wait_for_thread(caller, gone)
        loop = asyncio.get_running_loop()

        def count_idle(change: int) -> None:
            loop.call_soon_threadsafe(self._count_idle, caller, change)

        def run_work() -> T:
            _thread.count_idle = count_idle
            try:
                return work()
            finally:
                del _thread.count_idle

        try:
            return await loop.run_in_executor(self.pool, run_work)
        finally:
            self._give_back(caller)

    async def _wait_for_thread(
        self, caller: str, gone: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        if self.waiting_by[caller] >= self.max_waiting:
            raise TurnRefused
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[turn] = caller
        self.waiting_by[caller] += 1
        self._admit()
        leaving = asyncio.create_task(gone())
        try:
            await asyncio.wait(
                {turn, leaving}, timeout=self.timeout, return_when="FIRST_COMPLETED"
            )
        except asyncio.CancelledError:
            if turn.done():
                self._give_back(caller)
            else:
                self._forget(turn)
            raise
        finally:
            leaving.cancel()
        if not turn.done():
            self._forget(turn)
            raise TurnRefused

    def _start(self, caller: str) -> None:
        self.free -= 1
        self.running[caller] += 1

    def _give_back(self, caller: str) -> None:
        self.free += 1
        self.running[caller] -= 1
        if not self.running[caller]:
            del self.running[caller]
        self._admit()

    def _forget(self, turn: "asyncio.Future[None]") -> str:
        caller = self.waiting.pop(turn)
        self.waiting_by[caller] -= 1
        if not self.waiting_by[caller]:
            del self.waiting_by[caller]
        return caller

    def _count_idle(self, caller: str, change: int) -> None:
        self.idle_by[caller] += change
        if not self.idle_by[caller]:
            del self.idle_by[caller]
        self._admit()

    def _may_start(self, caller: str) -> bool:
        if self.max_busy is None or not self.recent.has_others_than(caller):
            return True
        return self.running[caller] - self.idle_by[caller] < self.max_busy

    def _admit(self) -> None:
        while self.free and (turn := self._next()):
            self._start(self._forget(turn))
            turn.set_result(None)

    def _next(self) -> "asyncio.Future[None] | None":
        """Of those that may start, the first in order of arrival whose caller has not its share
        already, else the first."""
        ready = {caller for caller in self.waiting_by if self._may_start(caller)}
        turns = [turn for turn, caller in self.waiting.items() if caller in ready]
        within_share = (
            turn for turn in turns if self.running[self.waiting[turn]] < self.share
        )
        first = next(iter(turns), None)
        return next(within_share, first) if len(ready) > 1 else first
