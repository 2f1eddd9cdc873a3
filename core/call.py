"""One call: what its code shares without passing it on. This page lists all of it.

A call is a request, a job that a worker has leased, or a command. Each thread has one at
a time, `this_call`: a web process begins one for each request, other threads keep
theirs, and each member is put back by the block that has set it. What the product is
about travels in arguments; only what belongs to the call itself stands here, each member
with the module that uses it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Call(threading.local):
    # agency/server/middleware.py: the id of the request, for log lines and new rows, and
    # the id of the organization whose keys it has.
    request_id: str = ""
    tenant_id: Any = None
    # core/work/waiting.py: when all waits end, on the clock of monotonic(). Of a
    # request agency/server/middleware.py sets it.
    deadline: float | None = None
    # core/work/fair_pool.py: tells the pool of this thread that it only waits.
    count_idle: Callable[[int], None] | None = None
    # core/database/pool.py: whether connections are lent without a check.
    lends_unchecked: bool = False
    # core/database/prepared_statements.py: whether none is prepared.
    plans_for_values: bool = False
    # core/work/transactions.py: what belongs to the outermost atomic().
    transaction: Any = None
    # core/work/network_reads.py: what was read for the transaction that is retried.
    reads: Any = None
    # tenants/idempotency.py: the key of the write that is handled.
    idempotency_key: str = ""
    # connections/messaging/outbox.py: replies to a peer that takes them in its own call.
    replies: Any = None
    # connections/transport/delivery.py: the rows that this call still delivers.
    undelivered: Any = None


this_call = Call()


@contextmanager
def begin_call() -> Iterator[None]:
    """Let a new call begin in this thread; at the end, the one before goes on."""
    members = vars(this_call)
    outer = dict(members)
    members.clear()
    try:
        yield
    finally:
        members.clear()
        members.update(outer)
