"""Threads shared out fairly: work waits its turn on the event loop, not in a thread."""

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def lower_priority(niceness: int) -> None:
    """Of this thread alone, where threads have priorities of their own."""
    if niceness and sys.platform == "linux":
        thread = threading.get_native_id()
        usual = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(19, usual + niceness))


class TurnRefused(Exception):
    """The work got no thread in time, or too much of the same caller's waits already."""


class Lane:
    """A pool of threads for the work of many callers.

    Work starts in order of arrival, with one exception: while work of several callers waits, that
    of a caller who already has half of the threads stands back. A caller alone may use all of
    them. To be used from one event loop.
    """

    def __init__(
        self, name: str, threads: int, *, max_waiting: int, timeout: float, niceness: int = 0
    ) -> None:
        """max_waiting: calls of one caller that may wait at a time. timeout: seconds to wait.
        niceness: added to that of the process, for the threads of this lane."""
        self.pool = ThreadPoolExecutor(
            threads, name, initializer=lower_priority, initargs=[niceness]
        )
        self.free = threads
        self.share = max(1, threads // 2)
        self.max_waiting = max_waiting
        self.timeout = timeout
        self.running: Counter[str] = Counter()
        self.waiting: dict[asyncio.Future[None], str] = {}
        self.waiting_by: Counter[str] = Counter()

    async def run(
        self, caller: str, work: Callable[[], T], gone: Callable[[], Coroutine[Any, Any, None]]
    ) -> T:
        """The result of `work`, called in a thread.

        gone: returns when the caller has left. It is asked only while the work waits; work that
        has begun goes on. Raises TurnRefused if `work` was never called.
        """
        if self.free and not self.waiting:
            self._start(caller)
        else:
            await self._wait_for_thread(caller, gone)
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, work)
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
        leaving = asyncio.create_task(gone())
        try:
            await asyncio.wait({turn, leaving}, timeout=self.timeout, return_when="FIRST_COMPLETED")
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

    def _admit(self) -> None:
        while self.free and self.waiting:
            turn = self._next()
            self._start(self._forget(turn))
            turn.set_result(None)

    def _next(self) -> "asyncio.Future[None]":
        """The first in order of arrival whose caller has not its share already, else the first."""
        within_share = (
            turn for turn, caller in self.waiting.items() if self.running[caller] < self.share
        )
        first = next(iter(self.waiting))
        return next(within_share, first) if len(self.waiting_by) > 1 else first
