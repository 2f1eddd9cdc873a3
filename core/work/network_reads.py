"""Network reads, made outside of database transactions.

A transaction that reads a ledger would hold its row locks until the ledger responds.
So a read inside a transaction whose value is not cached raises ReadNeeded. The
transaction rolls back, the read is made outside of it, and the transaction is retried
with the value cached.
"""

import time
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from django.db import connection

from core.call import this_call
from core.errors import Unavailable
from core.work import transactions

# For all reads of one transaction. TIMEOUT_SECONDS plus one read stays below
# leases.LEASE.
TIMEOUT_SECONDS = 25.0
Result = TypeVar("Result")
Given = ParamSpec("Given")


class ReadNeeded(Exception):
    """A transaction needs the result of `read`, which must be called outside of it."""

    def __init__(self, name: Hashable, read: Callable[[], Any]) -> None:
        super().__init__(
            f"{name} is read outside of transactions (core/work/network_reads.py)"
        )
        self.name, self.read = name, read


class ReadCache(NamedTuple):
    """The values that were read for one transaction, by name, and its start time."""

    values: dict[Hashable, Any]
    began: int


def read_outside_transaction(name: Hashable, read: Callable[[], Result]) -> Result:
    """Return the value of `read`, which makes a network call.

    Outside of a transaction each call reads. Inside one: return the value that was
    read for it before, or raise ReadNeeded. name: identifies the value, unique in the
    process.
    """
    if not connection.in_atomic_block:
        return read()
    cache: ReadCache | None = this_call.reads
    if cache and name in cache.values:
        return cache.values[name]
    raise ReadNeeded(name, read)


def forbid_in_transaction() -> None:
    """Raise RuntimeError inside a transaction. Called before every network call.

    The locks of the transaction would be held as long as the call takes.
    """
    if connection.in_atomic_block:
        raise RuntimeError(
            "no call inside a transaction: see core/work/network_reads.py"
        )


def now() -> int:
    """Return the Unix time in seconds, as an int.

    While a transaction is retried, it is the time of the first try. So a read whose
    name contains the time has the same name in each try.
    """
    cache: ReadCache | None = this_call.reads
    return cache.began if cache else int(time.time())


def retry_transaction(run: Callable[[], Result]) -> Result:
    """Run a transaction, and again after each network read that it needs.

    Return what `run` returns. It must not change its arguments before the last read.
    Raises what `run` and the reads raise, such as 503 `ledger_unavailable`, and 503
    `too_many_reads` after TIMEOUT_SECONDS.

    Inside a transaction `run` is called once, and ReadNeeded propagates to the caller
    that retries the outermost transaction.
    """
    if connection.in_atomic_block:
        return run()
    outer_cache = this_call.reads
    end = time.monotonic() + TIMEOUT_SECONDS
    this_call.reads = cache = ReadCache({}, int(time.time()))
    try:
        while time.monotonic() < end:
            try:
                return run()
            except ReadNeeded as needed:
                cache.values[needed.name] = needed.read()
    finally:
        this_call.reads = outer_cache
    raise Unavailable(
        "too_many_reads", "What this needs of ledgers takes too long to read."
    )


def atomic_with_reads(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function to run in atomic(), and again after each network read.

    For a function that may read a ledger, a DID or what a peer supports. Raises what
    retry_transaction() raises: inside of another transaction that is ReadNeeded.
    """

    run = transactions.atomic()(function)

    @wraps(function)
    def retried(*arguments: Given.args, **named: Given.kwargs) -> Result:
        return retry_transaction(lambda: run(*arguments, **named))

    return retried
