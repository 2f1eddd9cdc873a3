"""Reads over the network, kept out of the database's transactions.

A transaction that reads a ledger would hold its row locks for as long as that takes.
So a read inside a transaction whose value is not cached raises ReadNeeded: the
transaction rolls back, the read is made outside of it, and the transaction runs again
with the value cached.
"""

import threading
import time
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction

from agency.core.errors import Unavailable

# For all reads of one transaction: with the last of them still less than a lease.
TIMEOUT_SECONDS = 25.0
Result = TypeVar("Result")
Given = ParamSpec("Given")
_local = threading.local()


class ReadNeeded(Exception):
    """Asked inside a transaction for what only `read`, called outside of any, can
    tell.
    """

    def __init__(self, name: Hashable, read: Callable[[], Any]) -> None:
        super().__init__(
            f"{name} is read outside of transactions (agency/core/network_reads.py)"
        )
        self.name, self.read = name, read


class ReadCache:
    """The values that were read for one transaction, by name, and the second in which
    it began.
    """

    def __init__(self) -> None:
        self.values: dict[Hashable, Any] = {}
        self.began = int(time.time())


def read_once(name: Hashable, read: Callable[[], Result]) -> Result:
    """The value of `read`, which goes over the network.

    Inside a transaction: the value that was read for it before, else ReadNeeded.
    name: of the value, unique in the process.
    """
    if not connection.in_atomic_block:
        return read()
    cache = _current_cache()
    if cache and name in cache.values:
        return cache.values[name]
    raise ReadNeeded(name, read)


def forbid_in_transaction() -> None:
    """Before every call over the network: a transaction's locks would last as long as
    the call.
    """
    if connection.in_atomic_block:
        raise RuntimeError(
            "no call inside a transaction: see agency/core/network_reads.py"
        )


def now() -> int:
    """Unix seconds. While a transaction is retried: those of its first try, so that a
    question about this moment stays the same question.
    """
    cache = _current_cache()
    return cache.began if cache else int(time.time())


def retry_transaction(run: Callable[[], Result]) -> Result:
    """Run a transaction, and again after each network read that it needs.

    `run` must not change its arguments before the last read. 503 `too_many_reads`
    after TIMEOUT_SECONDS. Inside a transaction it runs once: ReadNeeded goes to
    whoever retries the outermost transaction.
    """
    if connection.in_atomic_block:
        return run()
    outer_cache = _current_cache()
    end = time.monotonic() + TIMEOUT_SECONDS
    _local.cache = cache = ReadCache()
    try:
        while time.monotonic() < end:
            try:
                return run()
            except ReadNeeded as needed:
                cache.values[needed.name] = needed.read()
    finally:
        _local.cache = outer_cache
    raise Unavailable(
        "too_many_reads", "What this needs of ledgers takes too long to read."
    )


def atomic_with_reads(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Like transaction.atomic, for a function that may read a ledger; see
    `retry_transaction`.
    """

    @wraps(function)
    def retried(*arguments: Given.args, **named: Given.kwargs) -> Result:
        def run() -> Result:
            with transaction.atomic():
                return function(*arguments, **named)

        return retry_transaction(run)

    return retried


def _current_cache() -> ReadCache | None:
    return getattr(_local, "cache", None)
