"""Threads shared out between callers."""

import asyncio
import os
import sys
import threading

import pytest

from agency.server import web as server
from agency.server.web import DjangoResponse, WebApplication
from core.net import callers
from core.work import fair_pool
from core.work.fair_pool import FairThreadPool, NoThreadFree, RecentCallers
from core.work.sibling_processes import SiblingProcesses
from tests.support.coroutines import in_a_loop, until


class Work:
    """Calls that run until they are let go, in the order in which they began."""

    def __init__(self, lane):
        self.lane = lane
        self.begun = []
        self.ends = {}
        self.tasks = {}
        self.ended = self.others = 0  # others: calls of the lane that are not ours

    async def call(self, *names, gone=None, **options):
        """The call `A1` is the caller A's."""
        for name in names:
            self.ends[name] = threading.Event()
            waited_for = self.lane.run(
                name[0], lambda name=name: self.run(name), gone or stays, **options
            )
            self.tasks[name] = asyncio.create_task(waited_for)
            await self.settle()

    def run(self, name):
        self.begun.append(name)
        assert self.ends[name].wait(10)
        return name

    async def end(self, *names):
        for name in names:
            self.ends[name].set()
            assert await self.tasks[name] == name
            self.ended += 1
            await self.settle()

    async def settle(self):
        """Until each thread that the lane has given runs its call."""
        await settle()
        given = lambda: self.lane.running.total() - self.others  # noqa: E731
        await until(lambda: len(self.begun) - self.ended >= given())


async def stays():
    await asyncio.Event().wait()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def lane(threads=4, max_waiting=100, timeout=10.0, **options):
    return FairThreadPool(
        "test", threads, max_waiting=max_waiting, timeout=timeout, **options
    )


def lane_beside_others(max_busy=1):
    recent = RecentCallers(SiblingProcesses())
    recent.SECONDS = 60.0
    recent.add("other")
    return lane(max_busy=max_busy, recent=recent), recent


@in_a_loop
async def test_a_caller_alone_uses_all_threads_in_order_of_arrival():
    work = Work(lane(threads=2))
    await work.call("A1", "A2", "A3", "A4")
    assert work.begun == ["A1", "A2"]
    await work.end("A1", "A2", "A3", "A4")
    assert work.begun == ["A1", "A2", "A3", "A4"]


@in_a_loop
async def test_a_caller_with_half_of_the_threads_stands_back_while_others_wait():
    work = Work(lane(threads=4))
    await work.call("A1", "A2", "A3", "A4", "A5", "A6", "B1", "C1", "B2")
    await work.end("A1", "A2")
    assert work.begun[4:] == ["B1", "C1"]
    await work.end("A3")
    assert work.begun[6:] == ["A5"]
    await work.end("A4", "A5", "A6", "B1", "C1", "B2")


@in_a_loop
async def test_no_thread_is_left_idle_while_work_waits():
    work = Work(lane(threads=3))
    await work.call("A1", "B1", "A2", "A3", "B2")
    await work.end("A1", "B1")
    assert len(work.begun) == 5
    await work.end("A2", "A3", "B2")


@in_a_loop
async def test_beside_others_a_caller_runs_few_calls_though_threads_are_free():
    threads, recent = lane_beside_others(max_busy=2)
    work = Work(threads)
    await work.call("A1", "A2", "A3", "B1", "A4")
    assert work.begun == ["A1", "A2", "B1"]
    await work.end("B1", "A1")
    assert work.begun == ["A1", "A2", "B1", "A3"]
    recent.SECONDS = 0.0
    await work.end("A2", "A3", "A4")


@in_a_loop
async def test_a_caller_alone_runs_no_more_calls_than_there_are_processors():
    work = Work(lane(max_busy=2, max_busy_beside_others=1))
    await work.call("A1", "A2", "A3")
    assert work.begun == ["A1", "A2"]
    work.lane.recent.SECONDS = 60.0
    work.lane.recent.add("other")
    await work.end("A1")
    assert work.begun == ["A1", "A2"], "another one called since"
    await work.end("A2")
    assert work.begun == ["A1", "A2", "A3"]
    await work.end("A3")


@in_a_loop
async def test_a_stranger_never_uses_all_processors():
    work = Work(lane(max_busy=2, max_busy_beside_others=1))
    await work.call("A1", "A2", "B1", is_stranger=True)
    await work.call("C1", "C2")
    assert work.begun == ["A1", "B1", "C1", "C2"]
    await work.end("A1", "A2", "B1", "C1", "C2")


@in_a_loop
async def test_strangers_together_leave_a_processor_to_organizations():
    threads, recent = lane_beside_others()
    threads.max_busy = 2
    work = Work(threads)
    await work.call("A1", "B1", "C1", is_stranger=True)
    await work.call("D1")
    assert work.begun == ["A1", "D1"]
    await work.end("A1")
    assert work.begun == ["A1", "D1", "B1"]
    recent.SECONDS = 0.0  # no organization has called meanwhile
    await work.end("D1")
    assert work.begun == ["A1", "D1", "B1", "C1"]
    await work.end("B1", "C1")
    assert threads.strangers == set()


@in_a_loop
async def test_strangers_take_turns_whoever_of_them_came_first():
    threads, _ = lane_beside_others()
    work = Work(threads)
    await work.call("A1", "A2", "A3", "B1", is_stranger=True)
    await work.end("A1")
    assert work.begun == ["A1", "B1"]
    await work.end("B1")
    assert work.begun == ["A1", "B1", "A2"]
    await work.end("A2", "A3")
    assert (threads.strangers, threads.served) == (set(), {})


@in_a_loop
async def test_a_caller_that_is_alone_again_uses_all_processors():
    threads, recent = lane_beside_others()
    threads.max_busy = 2
    work = Work(threads)
    await work.call("A1", "A2", "A3")
    assert work.begun == ["A1"]
    recent.SECONDS = 0.0
    await work.end("A1")
    # Two threads start them at the same moment.
    assert sorted(work.begun) == ["A1", "A2", "A3"]
    await work.end("A2", "A3")


@in_a_loop
async def test_a_call_that_only_waits_keeps_no_other_of_its_caller_back():
    threads, _ = lane_beside_others()
    work, ended = Work(threads), threading.Event()

    def wait():
        with fair_pool.idle_thread():
            assert ended.wait(10)

    waiting = asyncio.create_task(threads.run("A", wait, stays))
    await until(lambda: threads.idle_by)
    work.others = 1
    await work.call("A1", "A2")
    assert work.begun == ["A1"]
    ended.set()
    await waiting
    assert not threads.idle_by
    await work.end("A1", "A2")


def test_callers_are_recent_for_a_while_and_not_kept_longer():
    recent = RecentCallers(SiblingProcesses())
    recent.add("A")
    assert not recent.has_others_than("A") and recent.has_others_than("B")
    recent.SECONDS = 0.0
    assert not recent.has_others_than("B") and not recent._called_at


@in_a_loop
async def test_who_waits_too_long_or_too_often_is_refused_and_nothing_is_kept_of_it():
    threads = lane(threads=1, max_waiting=1, timeout=0.2)
    work = Work(threads)
    await work.call("A1", "A2", "A3")
    for name in ("A3", "A2"):
        with pytest.raises(NoThreadFree):
            await work.tasks[name]
    await work.end("A1")
    assert work.begun == ["A1"]
    assert (threads.free, threads.waiting, threads.running) == (1, {}, {})


@in_a_loop
async def test_what_nobody_waits_for_any_more_is_not_begun():
    threads, left = lane(threads=1), asyncio.Event()
    work = Work(threads)
    await work.call("A1")
    await work.call("B1", gone=left.wait)
    left.set()
    with pytest.raises(NoThreadFree):
        await work.tasks["B1"]
    await work.end("A1")
    assert work.begun == ["A1"] and threads.free == 1


@in_a_loop
async def test_a_cancelled_wait_takes_no_thread():
    work = Work(lane(threads=1))
    await work.call("A1", "B1")
    work.tasks["B1"].cancel()
    await settle()
    await work.end("A1")
    await work.call("A2")
    assert work.begun == ["A1", "A2"]
    await work.end("A2")


@in_a_loop
async def test_a_wait_cancelled_when_its_turn_had_just_come_gives_the_thread_back():
    work = Work(lane(threads=1))
    await work.call("A1", "B1")
    # As when A1 ends, and in the same step of the loop:
    work.lane._release_thread("A")
    work.tasks["B1"].cancel()
    await settle()
    assert work.lane.free == 1 and not work.lane.running and not work.lane.waiting
    work.ends["A1"].set()


@pytest.mark.skipif(
    sys.platform != "linux", reason="only there a thread has its own priority"
)
@in_a_loop
async def test_threads_of_a_lane_have_its_priority():
    def priority():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual, niced = lane(threads=1), lane(threads=1, niceness=7)
    expected = await usual.run("A", priority, stays) + 7
    assert await niced.run("A", priority, stays) == expected


async def asked(web, path, authorization):
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event):
        pass

    headers = [(b"authorization", authorization.encode())]
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path}
    await web(scope | {"headers": headers, "client": ("127.0.0.1", 1)}, receive, send)


def test_half_of_the_processors_are_kept_for_others(monkeypatch):
    for processors, busy in ((8, 4), (3, 1), (2, 1), (1, 1)):
        monkeypatch.setattr(server, "count_processors", lambda found=processors: found)
        heavy = WebApplication().heavy
        assert (heavy.max_busy, heavy.max_busy_beside_others) == (processors, busy)


@in_a_loop
async def test_half_of_the_processors_are_kept_for_other_organizations_not_for_strangers(
    monkeypatch,
):
    web, empty = WebApplication(), DjangoResponse(200, [], b"", None, close=bool)
    monkeypatch.setattr(web.django, "handle_request", lambda *_: empty)
    callers.remember_caller("bearer of a neighbour", "neighbour")
    assert web.heavy.max_busy and web.quick.max_busy is None
    strangers = []

    async def run(caller, work, wait_until_gone, is_stranger):
        strangers.append(is_stranger)
        return empty

    monkeypatch.setattr(web.quick, "run", run)
    assert web.heavy.recent is web.recent_callers
    await asked(web, "/connections", "bearer of nobody")
    assert not web.recent_callers.has_others_than("A")
    await asked(web, "/connections", "bearer of a neighbour")
    assert web.recent_callers.has_others_than("A")
    assert strangers == [True, False]
