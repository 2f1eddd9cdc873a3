"""A thread pool shared fairly by its callers. Work waits on the event loop."""

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from core.call import begin_call, this_call
from core.work.sibling_processes import (
    HEARTBEAT_SECONDS,
    NEVER,
    NO_CALLS,
    Calls,
    SiblingProcesses,
)

# Between two looks at what other processes run, while work waits here.
POLL_SECONDS = 0.02
STRANGERS = "strangers"  # all of them together; no caller has this name
# How long work waits before its client is watched, which costs more than a short wait.
UNWATCHED_SECONDS = 0.05
T = TypeVar("T")


def lower_priority(niceness: int) -> None:
    """Lower the priority of this thread. Only Linux has priorities of threads."""
    if niceness and sys.platform == "linux":
        thread = threading.get_native_id()
        usual = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(19, usual + niceness))


@contextmanager
def idle_thread() -> Iterator[None]:
    """Mark a block that only waits, for example for the response of a ledger.

    During the block, the work does not count towards the `max_busy` of its caller.
    Does nothing in a thread that does not belong to a FairThreadPool.
    """
    count_idle = this_call.count_idle
    if count_idle is None:
        yield
        return
    count_idle(+1)
    try:
        yield
    finally:
        count_idle(-1)


class RecentCallers:
    """The callers of the last second, of all sibling processes."""

    SECONDS = 1.0

    def __init__(self, siblings: SiblingProcesses) -> None:
        self.siblings = siblings
        self._called_at: dict[str, float] = {}  # of this process, oldest first

    def add(self, caller: str) -> None:
        self._called_at.pop(caller, None)
        self._called_at[caller] = time.monotonic()
        self._forget_old()
        self.siblings.note_caller(caller)

    def has_others_than(self, caller: str) -> bool:
        self._forget_old()
        if len(self._called_at) > (caller in self._called_at):
            return True
        return self.siblings.have_others_than(caller, self.SECONDS)

    def _forget_old(self) -> None:
        end = time.monotonic() - self.SECONDS
        while self._called_at:
            oldest = next(iter(self._called_at))
            if self._called_at[oldest] > end:
                return
            del self._called_at[oldest]


class Arrival(NamedTuple):
    """Work of a caller. time: monotonic, when it arrived.

    is_stranger: whether its caller is always limited as beside others, and beside an
    organization all such callers together are: addresses are easily had.
    """

    caller: str
    time: float
    is_stranger: bool


class NoThreadFree(Exception):
    """No thread was free in time, or too much work of the caller waits already."""


class FairThreadPool:
    """A pool of threads for the work of many callers, used from one event loop.

    Work starts in order of arrival, with one exception: while work of several callers
    waits, a caller that uses half of the threads gets no more. A single caller may use
    all threads.
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
        max_busy_beside_others: int | None = None,
        recent: RecentCallers | None = None,
    ) -> None:
        """Create the pool.

        max_waiting: the maximum of waiting calls of one caller.
        timeout: seconds to wait for a thread.
        niceness: added to the niceness of the process, for the threads of this pool.
        max_busy: the maximum of running calls of one caller in all sibling processes,
        even if threads are free; None for no limit. Calls in `idle_thread` do not
        count. A process may start a call while none of the caller runs in it, so that
        no process has to wait for the others.
        max_busy_beside_others: the maximum while `recent` contains other callers;
        `max_busy` if None. Then the processes take turns, and one may have to wait.
        """
        self.pool = ThreadPoolExecutor(
            threads, name, initializer=lower_priority, initargs=(niceness,)
        )
        self.free = threads
        self.fair_share = max(1, threads // 2)
        self.max_waiting = max_waiting
        self.timeout = timeout
        self.max_busy = max_busy
        self.max_busy_beside_others = max_busy_beside_others or max_busy
        self.recent = recent or RecentCallers(SiblingProcesses())
        self.running: Counter[str] = Counter()
        self.strangers: set[str] = set()  # of those that run or wait
        self.served: dict[str, float] = {}  # when work of such a one ended
        self.idle_by: Counter[str] = Counter()
        self.waiting: dict[asyncio.Future[None], Arrival] = {}
        self.waiting_by: Counter[str] = Counter()
        self.timer: asyncio.TimerHandle | None = None

    async def run(
        self,
        caller: str,
        work: Callable[[], T],
        wait_until_gone: Callable[[], Coroutine[Any, Any, None]],
        is_stranger: bool = False,
    ) -> T:
        """Call `work` in a thread and return its result.

        wait_until_gone: returns when the client has disconnected; used only while the
        work waits. Work that has started is finished. is_stranger: see Arrival. Raises
        NoThreadFree if `work` was never called.
        """
        arrival = Arrival(caller, time.monotonic(), is_stranger)
        if is_stranger:
            self.strangers.add(caller)
        if self.free and not self.waiting and self._may_start(arrival):
            self._take_thread(caller)
        else:
            await self._wait_for_thread(arrival, wait_until_gone)
        loop = asyncio.get_running_loop()

        def count_idle(change: int) -> None:
            loop.call_soon_threadsafe(self._count_idle, caller, change)

        def run_work() -> T:
            with begin_call():
                this_call.count_idle = count_idle
                return work()

        try:
            return await loop.run_in_executor(self.pool, run_work)
        finally:
            self._release_thread(caller)

    async def _wait_for_thread(
        self,
        arrival: "Arrival",
        wait_until_gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        caller = arrival.caller
        if self.waiting_by[caller] >= self.max_waiting:
            raise NoThreadFree
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[turn] = arrival
        self.waiting_by[caller] += 1
        self._start_waiting()
        self._tell_siblings()
        try:
            await asyncio.wait({turn}, timeout=UNWATCHED_SECONDS)
            if not turn.done():
                await self._wait_while_there(turn, wait_until_gone)
        except asyncio.CancelledError:
            if turn.done():  # the thread was assigned already
                self._release_thread(caller)
            else:
                self._stop_waiting(turn)
            raise
        if not turn.done():
            self._stop_waiting(turn)
            raise NoThreadFree

    async def _wait_while_there(
        self,
        turn: "asyncio.Future[None]",
        wait_until_gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        leaving = asyncio.create_task(wait_until_gone())
        try:
            await asyncio.wait(
                {turn, leaving}, timeout=self.timeout, return_when="FIRST_COMPLETED"
            )
        finally:
            leaving.cancel()

    def _take_thread(self, caller: str) -> None:
        self.free -= 1
        self.running[caller] += 1
        self._tell_siblings()

    def _release_thread(self, caller: str) -> None:
        self.free += 1
        self.running[caller] -= 1
        if not self.running[caller]:
            del self.running[caller]
        if caller in self.strangers:
            self.served[caller] = time.monotonic()
        self._start_waiting()
        self.strangers &= {*self.running, *self.waiting_by}
        self.served = {
            one: self.served[one] for one in self.served.keys() & self.strangers
        }
        self._tell_siblings()

    def _stop_waiting(self, turn: "asyncio.Future[None]") -> str:
        caller = self.waiting.pop(turn).caller
        self.waiting_by[caller] -= 1
        if not self.waiting_by[caller]:
            del self.waiting_by[caller]
        return caller

    def _count_idle(self, caller: str, change: int) -> None:
        self.idle_by[caller] += change
        if not self.idle_by[caller]:
            del self.idle_by[caller]
        self._start_waiting()
        self._tell_siblings()

    def _may_start(self, arrival: "Arrival") -> bool:
        """Whether the limits of its caller (see __init__) let this work start now.

        Without other callers, one call per process always may. Beside others, work of
        the same caller that has waited longer in another process goes first.
        """
        caller = arrival.caller
        if self.max_busy is None or self.max_busy_beside_others is None:
            return True
        here = self._count_busy(caller)
        elsewhere = self.recent.siblings.calls_of(caller)
        if not (arrival.is_stranger or self.recent.has_others_than(caller)):
            return not here or here + elsewhere.busy < self.max_busy
        if elsewhere.waiting_since < arrival.time:
            return False
        if here + elsewhere.busy >= self.max_busy_beside_others:
            return False
        if arrival.is_stranger and self.recent.has_others_than(STRANGERS):
            return self._may_start_stranger(arrival, self.max_busy_beside_others)
        return True

    def _may_start_stranger(self, arrival: "Arrival", max_busy: int) -> bool:
        """Whether the limit of all strangers together lets this work start now."""
        elsewhere = self.recent.siblings.calls_of(STRANGERS)
        if elsewhere.waiting_since < self._waiting_since(arrival):
            return False
        return self._count_busy_strangers() + elsewhere.busy < max_busy

    def _count_busy_strangers(self) -> int:
        busy = (self._count_busy(one) for one in self.running if one in self.strangers)
        return sum(max(0, one) for one in busy)

    def _waiting_since(self, arrival: "Arrival") -> float:
        """Since when the caller waits for a turn: strangers take turns by caller.

        Else one that sends many calls at once would make all others wait for them.
        """
        return max(arrival.time, self.served.get(arrival.caller, 0.0))

    def _count_busy(self, caller: str) -> int:
        return self.running[caller] - self.idle_by[caller]

    def _tell_siblings(self) -> None:
        """Tell the other processes what runs and waits here, if the limit needs it.

        Work that could not start here if it were its turn is not told: nobody should
        wait for it.
        """
        if self.max_busy is None:
            return
        since: dict[str, float] = {}
        for arrival in self.waiting.values() if self.free else ():
            since.setdefault(arrival.caller, arrival.time)
            if arrival.is_stranger:
                first = since.get(STRANGERS, NEVER)
                since[STRANGERS] = min(first, self._waiting_since(arrival))
        strangers = Calls(self._count_busy_strangers(), since.pop(STRANGERS, NEVER))
        # First, as others beyond MAX_CALLERS are left out.
        calls = {STRANGERS: strangers} if strangers != NO_CALLS else {}
        for caller in {*self.running, *since}:
            busy = max(0, self._count_busy(caller))
            calls[caller] = Calls(busy, since.get(caller, NEVER))
        self.recent.siblings.note_calls(calls)
        if self.running or self.waiting:
            self._look_again_in(POLL_SECONDS if self.waiting else HEARTBEAT_SECONDS)

    def _look_again_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self.timer and self.timer.when() > loop.time() + seconds:
            self.timer.cancel()
            self.timer = None
        self.timer = self.timer or loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        """Start what another process made wait, and tell the others that we live."""
        self.timer = None
        self._start_waiting()
        self._tell_siblings()

    def _start_waiting(self) -> None:
        while self.free and (turn := self._next_waiting()):
            self._take_thread(self._stop_waiting(turn))
            turn.set_result(None)

    def _next_waiting(self) -> "asyncio.Future[None] | None":
        """Return the work to start next, among the work that may start now.

        It is the first in order of arrival whose caller has less than its fair share
        of threads, or else the first. In the places of strangers, the one that waits
        for its turn longest is first.
        """
        first_by_caller: dict[str, asyncio.Future[None]] = {}
        for turn, arrival in self.waiting.items():
            first_by_caller.setdefault(arrival.caller, turn)
        ready = [
            turn
            for turn in first_by_caller.values()
            if self._may_start(self.waiting[turn])
        ]
        strangers = sorted(
            (turn for turn in ready if self.waiting[turn].is_stranger),
            key=lambda turn: self._waiting_since(self.waiting[turn]),
        )
        in_turn = iter(strangers)
        ready = [
            next(in_turn) if self.waiting[turn].is_stranger else turn for turn in ready
        ]
        within_share = (
            turn
            for turn in ready
            if self.running[self.waiting[turn].caller] < self.fair_share
        )
        first = next(iter(ready), None)
        return next(within_share, first) if len(ready) > 1 else first
