"""The share of a caller holds over all web processes of one server."""

import errno
import os
import shutil
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from core.work import sibling_processes
from core.work.fair_pool import RecentCallers
from core.work.sibling_processes import NO_CALLS, Calls, SiblingProcesses
from tests.core import test_fair_pool
from tests.core.test_fair_pool import lane
from tests.support.coroutines import in_a_loop, until


class Work(test_fair_pool.Work):
    async def settle(self):
        """Until all has begun that may, by what the other process wrote."""
        self.lane._look_again()
        await super().settle()


@pytest.fixture(autouse=True)
def no_wait_for_new_files(monkeypatch):
    monkeypatch.setattr(sibling_processes, "HEARTBEAT_SECONDS", 0.0)


@pytest.fixture
def two(tmp_path):
    return [SiblingProcesses(tmp_path) for _ in range(2)]


@pytest.fixture
def pools(two):
    """The pools of two processes, with one busy call of each caller for both."""
    recent = [RecentCallers(siblings) for siblings in two]
    for one in recent:
        one.SECONDS = 60.0
        one.add("other")
    return [Work(lane(max_busy=1, recent=one)) for one in recent]


def test_what_runs_and_waits_is_known_to_the_others(two):
    first, second = two
    first.note_calls({"A": Calls(2, 7.5), "B": Calls(0, 3.0)})
    assert second.calls_of("A") == Calls(2, 7.5)
    assert second.calls_of("B") == Calls(0, 3.0)
    assert first.calls_of("A") == second.calls_of("C") == NO_CALLS
    first.note_calls({})
    assert second.calls_of("A") == NO_CALLS


def test_callers_of_other_processes_are_others(two):
    first, second = two
    first.note_caller("A")
    assert second.have_others_than("B", seconds=60)
    assert not second.have_others_than("A", seconds=60)
    assert not second.have_others_than("B", seconds=0)
    assert not first.have_others_than("B", seconds=60), "itself is no other process"
    first.note_caller("B"), first.note_caller("B")
    assert second.have_others_than("A", 60) and second.have_others_than("B", 60)


@in_a_loop
async def test_a_caller_runs_no_more_calls_in_two_processes_than_in_one(pools):
    first, second = pools
    await first.call("A1")
    await second.call("A2", "B1")
    assert (first.begun, second.begun) == (["A1"], ["B1"])
    await first.end("A1")
    await until(lambda: second.begun == ["B1", "A2"])
    await second.end("A2", "B1")


@in_a_loop
async def test_work_of_two_processes_takes_turns_in_order_of_arrival(pools):
    first, second = pools
    await first.call("A1")
    await second.call("A2")
    await first.call("A3")
    await first.end("A1")
    await until(lambda: second.begun == ["A2"])
    await first.settle()
    assert first.begun == ["A1"]
    await second.end("A2")
    await until(lambda: first.begun == ["A1", "A3"])
    await first.end("A3")


@in_a_loop
async def test_strangers_of_all_processes_share_what_organizations_leave_them(two):
    recent = [RecentCallers(siblings) for siblings in two]
    recent[0].add("organization")
    recent[0].SECONDS = recent[1].SECONDS = 60.0
    first, second = (
        Work(lane(max_busy=2, max_busy_beside_others=1, recent=one)) for one in recent
    )
    await first.call("A1", is_stranger=True)
    await second.call("B1", is_stranger=True)
    assert (first.begun, second.begun) == (["A1"], [])
    await first.end("A1")
    await until(lambda: second.begun == ["B1"])
    await second.end("B1")


@in_a_loop
async def test_a_caller_alone_uses_all_processors_and_waits_for_no_process(two):
    first, second = (
        Work(lane(max_busy=2, recent=RecentCallers(siblings))) for siblings in two
    )
    await first.call("A1", "A2", "A3")
    await second.call("A4", "A5")
    assert (first.begun, second.begun) == (["A1", "A2"], ["A4"])
    await first.end("A1")
    assert first.begun == ["A1", "A2"], "one runs here and one there"
    await first.end("A2")
    assert first.begun == ["A1", "A2", "A3"]
    await second.end("A4")
    assert second.begun == ["A4", "A5"]
    await first.end("A3")
    await second.end("A5")


def test_a_process_that_ended_counts_no_more_and_its_file_goes(
    two, monkeypatch, tmp_path
):
    first, second = two
    first.note_calls({"A": Calls(4, 1.0)})
    first.note_caller("A")
    assert second.calls_of("A").busy == 4
    monkeypatch.setattr(sibling_processes, "STALE_SECONDS", 0.0)
    assert second.calls_of("A") == NO_CALLS
    assert not second.have_others_than("B", 60)
    monkeypatch.setattr(sibling_processes, "REMOVE_SECONDS", 0.0)
    second.write()
    second.calls_of("A")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_process_that_was_idle_for_long_is_known_again(two, monkeypatch, tmp_path):
    first, second = two
    later = lambda: time.monotonic() + sibling_processes.REMOVE_SECONDS  # noqa: E731
    monkeypatch.setattr(sibling_processes, "time", SimpleNamespace(monotonic=later))
    second.write()
    assert second.calls_of("A") == NO_CALLS
    assert len(list(tmp_path.iterdir())) == 1
    first.note_calls({"A": Calls(3, 1.0)})
    assert first.calls_of("A") == NO_CALLS, "as before each call is started"
    assert second.calls_of("A") == Calls(3, 1.0)


def test_a_folder_that_is_removed_ends_no_call(two, tmp_path, caplog):
    two[0].note_calls({"A": Calls(1, 1.0)})
    shutil.rmtree(tmp_path)
    assert two[1].calls_of("A") == NO_CALLS and "TMPDIR" in caplog.text
    two[1].note_calls({"A": Calls(1, 1.0)})


def test_a_full_disk_ends_no_process(tmp_path, monkeypatch, caplog):
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(os, "posix_fallocate", full)
    alone = SiblingProcesses(tmp_path)
    alone.note_calls({"A": Calls(1, 1.0)})
    assert alone.calls_of("A") == NO_CALLS and "TMPDIR" in caplog.text
    assert not list(tmp_path.iterdir())


def test_neither_foreign_files_nor_more_callers_than_have_a_place_do_harm(
    two, tmp_path
):
    tmp_path.joinpath("empty").touch()
    tmp_path.joinpath("folder").mkdir()
    two[0].note_calls({str(number): Calls(1, 1.0) for number in range(100)})
    assert two[1].calls_of("0").busy == 1 and two[1].calls_of("99") == NO_CALLS


@pytest.fixture
def is_worker(monkeypatch, settings, tmp_path):
    settings.WEB_PROCESSES = 2
    monkeypatch.setattr(sibling_processes.multiprocessing, "parent_process", object)
    monkeypatch.setattr(sibling_processes.tempfile, "gettempdir", lambda: str(tmp_path))


def test_the_processes_of_one_server_share_a_folder_of_their_own(is_worker):
    folder = sibling_processes.folder_of_siblings()
    assert (
        folder == sibling_processes.folder_of_siblings()
        and folder.stat().st_mode & 0o777 == 0o700
    )


def test_a_folder_that_is_not_ours_or_not_there_is_not_used_and_the_server_starts(
    is_worker, monkeypatch, tmp_path, caplog
):
    name = f"agency-web-{os.geteuid()}-{os.getppid()}"
    tmp_path.joinpath(name).symlink_to(tmp_path)
    assert sibling_processes.folder_of_siblings() is None and "TMPDIR" in caplog.text
    caplog.clear()
    none = Mock(side_effect=FileNotFoundError("No usable temporary directory found"))
    monkeypatch.setattr(sibling_processes.tempfile, "gettempdir", none)
    assert sibling_processes.folder_of_siblings() is None and "TMPDIR" in caplog.text


def test_one_process_shares_nothing(settings):
    assert sibling_processes.folder_of_siblings() is None, (
        "this is no worker of a server"
    )
    settings.WEB_PROCESSES = 1
    assert sibling_processes.folder_of_siblings() is None
