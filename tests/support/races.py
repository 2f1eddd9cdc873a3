"""Threads that start together, each with its own database connection."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from time import monotonic, sleep
from typing import Any

from django.db import connection, connections
from django.db.models import Model

from core.errors import AgencyError
from core.work import transactions
from tests.support.people import ApiError

PATIENCE = 20  # seconds until all threads must have reached the barrier
IS_WAITED_FOR = (  # whether another transaction waits for a lock of this one
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
    "AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls at once. Return the result or the error of each."""
    start = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait(PATIENCE)
        return call()

    return threads([lambda call=call: run(call) for call in calls])


def transitions(row: Model, *steps: str | Callable[[Any], Any]) -> list[Any]:
    """Run each function or named method at once, on its own copy of `row`.

    All copies are loaded before any of them starts.
    """
    start = Barrier(len(steps))

    def run(step: str | Callable[[Any], Any]) -> Any:
        copy = type(row).objects.get(pk=row.pk)
        start.wait(PATIENCE)
        with transactions.atomic():
            return getattr(copy, step)() if isinstance(step, str) else step(copy)

    return threads([lambda step=step: run(step) for step in steps])


def elsewhere(call: Callable[[], Any]) -> Any:
    """Run a call in another thread, outside the caller's transaction."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(in_thread, call).result()


def during(first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """Run a call while the transaction in which another was run stays open.

    Return the results of both.
    """
    begun, over = Event(), Event()

    def slow() -> Any:
        with transactions.atomic():
            result = first()
            begun.set()
            assert over.wait(PATIENCE)
            return result

    def quick() -> Any:
        assert begun.wait(PATIENCE)
        try:
            return second()
        finally:
            over.set()

    return threads([slow, quick])


def while_locked(
    holds: Callable[[], Any],
    waits: Callable[[], Any],
    then: Callable[[], Any] = lambda: None,
) -> Any:
    """Run one function in a transaction, and another that waits for its locks.

    then: the rest of the first, once the second waits. Return the second's result. If
    the second has locked what the rest needs, PostgreSQL ends either: OperationalError.
    """
    locked = Event()

    def first() -> None:
        with transactions.atomic():
            holds()
            locked.set()
            wait_until(is_waited_for)
            then()

    def second() -> Any:
        assert locked.wait(PATIENCE)
        return waits()

    failure, result = at_once(first, second)
    assert not failure, failure
    return result


def threads(calls: list[Callable[[], Any]]) -> list[Any]:
    connections.close_all()
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(in_thread, calls))


def in_thread(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (AgencyError, ApiError) as error:
        return error
    finally:
        connections.close_all()


def is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(IS_WAITED_FOR)
        return bool(cursor.fetchone()[0])


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds. It must, within PATIENCE."""
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, "it does not come to that"
        sleep(0.01)


def error_codes(answers: list[Any]) -> list[str]:
    """Return the codes of the errors among the results."""
    return [one.code for one in answers if isinstance(one, AgencyError | ApiError)]
