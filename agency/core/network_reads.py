"""Reads over the network, kept out of the database's transactions.

A transaction that reads a ledger would hold its row locks for as long as that takes. So what is
asked for inside one and not at hand ends the attempt (`NotAtHand`); it is read outside, and the
whole transaction is tried again with it at hand.
"""

import threading
import time
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction

from agency.core.errors import Unavailable

PATIENCE = 25.0  # seconds for all reads of one attempt: with the last of them less than a lease
Answer = TypeVar("Answer")
Given = ParamSpec("Given")
_local = threading.local()


class NotAtHand(Exception):
    """Asked inside a transaction for what only `read`, called outside of any, can tell."""

    def __init__(self, name: Hashable, read: Callable[[], Any]) -> None:
        super().__init__(f"{name} is read outside of transactions (agency/core/network_reads.py)")
        self.name, self.read = name, read


class Attempt:
    """What was read for one transaction, by name, and the second in which it began."""

    def __init__(self) -> None:
        self.answers: dict[Hashable, Any] = {}
        self.began = int(time.time())


def answer(name: Hashable, read: Callable[[], Answer]) -> Answer:
    """What `read` answers, which goes over the network. Inside a transaction: what it answered for
    this attempt before, else NotAtHand. name: of that answer, unique in the process."""
    if not connection.in_atomic_block:
        return read()
    attempt = _running()
    if attempt and name in attempt.answers:
        return attempt.answers[name]
    raise NotAtHand(name, read)


def require() -> None:
    """Before every call over the network: a transaction's locks would last as long as the call."""
    if connection.in_atomic_block:
        raise RuntimeError("no call inside a transaction: see agency/core/network_reads.py")


def now() -> int:
    """Unix seconds; while an attempt runs, those at its begin: what is asked about this moment is
    the same in each round."""
    attempt = _running()
    return attempt.began if attempt else int(time.time())


def rounds(transact: Callable[[], Answer]) -> Answer:
    """Calls a function that is one transaction until nothing that it asks for is missing.

    It must not change what it was given before it asks. 503 `too_many_reads` after PATIENCE.
    """
    if connection.in_atomic_block:
        return transact()
    former, end = _running(), time.monotonic() + PATIENCE
    _local.attempt = attempt = Attempt()
    try:
        while time.monotonic() < end:
            try:
                return transact()
            except NotAtHand as missing:
                attempt.answers[missing.name] = missing.read()
    finally:
        _local.attempt = former
    raise Unavailable("too_many_reads", "What this needs of ledgers takes too long to read.")


def atomic(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Like transaction.atomic, for what may ask a ledger; see `rounds`."""

    @wraps(function)
    def tried(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        def transact() -> Answer:
            with transaction.atomic():
                return function(*arguments, **named)

        return rounds(transact)

    return tried


def _running() -> Attempt | None:
    return getattr(_local, "attempt", None)
