"""The loops of a process, without a database: what they claim, start, record and log."""

from threading import Barrier
from types import SimpleNamespace

import pytest

from core.work import loop as loops
from core.work.loop import Loop, ThreadedLoop


def row(name, **fields):
    return SimpleNamespace(pk=name, lease_until=None, **fields)


class Letters(ThreadedLoop):
    """Claims letters, as many as are free, and records them in upper case."""

    def __init__(self, letters, threads=2, limits=None):
        super().__init__("letters", threads)
        self.left, self.recorded, self.limits = list(letters), [], limits or {}

    def limits_of(self, one):
        return self.limits

    def claim(self, at_work):
        free = self.threads - len(at_work)
        taken, self.left = self.left[:free], self.left[free:]
        return [row(letter) for letter in taken]

    def work(self, one):
        return one.pk.upper()

    def record(self, finished):
        self.recorded += [result for _, result in finished]


@pytest.fixture(autouse=True)
def leases_never_end(monkeypatch):
    monkeypatch.setattr(loops.RowsAtWork, "return_waiting", lambda *_, **__: None)


def test_a_threaded_loop_works_until_nothing_is_left():
    loop = Letters("abcde")
    loop.run()
    assert sorted(loop.recorded) == list("ABCDE")


def test_a_row_whose_work_raises_is_logged_and_stops_no_other(caplog):
    loop = Letters("abc")
    loop.work = lambda one: 1 / 0 if one.pk == "a" else one.pk
    loop.run()
    assert set(loop.recorded) == {"b", "c"}, "the first one waits for its lease"
    assert "letters: a row waits for its lease to end: ZeroDivisionError" in caplog.text


def test_a_row_whose_lease_ended_may_be_claimed_again_while_it_is_worked_on():
    loop = Letters("aa", limits={("tenant", 1): 2})
    both = Barrier(2)

    def work(one):
        both.wait(20)
        return one.pk

    loop.work = work
    loop.run()
    assert loop.recorded == ["a", "a"]
    assert not loop.rows.all()


def test_rows_beyond_their_share_wait_for_each_other():
    beside = []
    loop = Letters("abcd", threads=4, limits={("tenant", 1): 1})

    def work(one):
        while other := loop.rows.start_next():  # as another thread would
            beside.append(other.pk)
            loop.rows.finish(other, other.pk)
        return one.pk

    loop.work = work
    loop.run()
    assert sorted(loop.recorded) == list("abcd") and not beside


def test_what_a_row_has_taken_is_given_back_though_its_limits_change():
    """As where an endpoint is found to be slow during the call."""
    loop = Letters("ab", threads=1, limits={("tenant", 1): 1})

    def work(one):
        loop.limits = {("slow", None): 1}
        return one.pk

    loop.work = work
    loop.run()
    loop.limits, loop.left = {("tenant", 1): 1, ("slow", None): 1}, ["c"]
    loop.run()
    assert loop.recorded == ["a", "b", "c"]


def test_a_loop_gets_the_row_before_and_ends_without_a_next_one():
    seen, rows = [], [row("a"), row("b")]

    def claim(last):
        seen.append(last and last.pk)
        return rows.pop(0) if rows else None

    loop = Loop(claim, lambda one: None)
    loop.run()
    assert seen == [None, "a", "b"]


def test_what_raises_ends_the_run_and_the_next_one_goes_on():
    done, rows = [], [row("a"), row("b")]
    loop = Loop(lambda _: rows.pop(0) if rows else None, lambda one: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loop.run()
    loop.work = lambda one: done.append(one.pk)
    loop.run()
    assert done == ["b"]


def test_a_notice_to_a_running_loop_lets_it_look_again():
    looks = []

    def claim(_):
        looks.append(1)
        if len(looks) == 1:
            loop.run()  # as another thread: the lock is taken, so it only notifies
        return None

    loop = Loop(claim, lambda one: None)
    loop.run()
    assert len(looks) == 2


def test_the_end_of_the_worker_stops_all_its_loops(monkeypatch):
    both = {Letters("abc"), Loop(lambda _: row("endless"), lambda one: None)}
    monkeypatch.setattr(loops, "_loops", both)
    loops.stop_loops()
    for loop in both:
        loop.run()
        assert loop.is_stopped
