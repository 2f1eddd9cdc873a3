"""The connections of this process to Indy ledgers.

All pools run on one thread with an event loop. Callers wait for their response for at
most LEDGER_TIMEOUT seconds. Each process opens a pool when it first needs it. After a
fork the child opens its own pools and does not close those of the parent: that would
wait for a thread that the child does not have. All pools are closed before the process
ends: a thread of the library that calls back later aborts the process.
"""

import asyncio
import atexit
import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from indy_vdr import (
    Pool,
    Request,
    VdrError,
    VdrErrorCode,
    bindings,
    open_pool,
    set_config,
)
from indy_vdr import (
    version as library_version,
)

from core.errors import AgencyError, Conflict, Invalid, Unavailable
from core.work import fair_pool, network_reads
from core.work.waiting import seconds_left
from credentials.ledgers.indy import try_genesis
from tenants.models import Network

logger = logging.getLogger(__name__)
# Loads the library while one thread imports this: threads that load it at the same time
# panic, all but one.
library_version()
# How long a ledger that did not respond is not asked again.
RETRY_DELAY_SECONDS = 5.0
# Validators asked at once. With the library's 2 a read takes 5 s when both are down.
READ_NODES = 4
MAX_GENESIS_BYTES = 512 * 1024
GENESIS_CHECK_SECONDS = 10
# The library waits for its open connections, which last 5 s at most.
CLOSE_TIMEOUT_SECONDS = 6
# The library calls back for every request within this time, mostly within 5 s.
EXIT_TIMEOUT_SECONDS = 30


class Refused(Conflict):
    """The ledger has responded that it refuses the request."""


class Pools:
    """A thread with an event loop, its pools, and the ledgers that do not respond."""

    def __init__(self) -> None:
        set_config({"request_read_nodes": READ_NODES})
        self.loop = asyncio.new_event_loop()
        self.opened: dict[str, asyncio.Task[Pool]] = {}
        self.no_response_until: dict[tuple[str, bool], float] = {}
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="indy-pools", daemon=True
        )
        self.thread.start()

    async def submit(self, genesis: str, request: Request) -> dict[str, Any]:
        """Send a request by the pool of this genesis, on the loop of this object.

        Return the response. Raises VdrError, TimeoutError if the pool does not open.
        """
        pool = await asyncio.shield(self.open(genesis))
        return await pool.submit_request(request)

    def open(self, genesis: str) -> "asyncio.Task[Pool]":
        """Return the attempt to open the pool. A failed one is forgotten."""
        if genesis not in self.opened:
            attempt = open_pool(transactions=genesis)
            task = self.loop.create_task(
                asyncio.wait_for(attempt, settings.LEDGER_TIMEOUT)
            )
            task.add_done_callback(lambda done: self.forget_failed(genesis, done))
            self.opened[genesis] = task
        return self.opened[genesis]

    def forget_failed(self, genesis: str, task: "asyncio.Task[Pool]") -> None:
        if task.cancelled() or task.exception():
            self.opened.pop(genesis, None)

    async def close(self) -> None:
        for task in list(self.opened.values()):
            task.cancel()
        for opened in await asyncio.gather(
            *self.opened.values(), return_exceptions=True
        ):
            if isinstance(opened, Pool):
                opened.close()


_lock = threading.Lock()
_pools: list[Pools] = []
_of_the_parent: list[Pools] = []


def process_pools() -> Pools:
    with _lock:
        if not _pools:
            _pools.append(Pools())
        return _pools[0]


def _reset_after_fork() -> None:
    global _lock
    # Another thread of the parent may have held the lock during the fork.
    _lock = threading.Lock()
    for host in _pools:
        # The library must not close these pools when they are garbage collected.
        for task in host.opened.values():
            if task.done() and not task.cancelled() and not task.exception():
                task.result().handle = None
    _of_the_parent.extend(_pools)
    _pools.clear()


def _close_at_exit() -> None:
    for host in _pools:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(host.close(), host.loop).result(
                CLOSE_TIMEOUT_SECONDS
            )
        host.loop.call_soon_threadsafe(host.loop.stop)
        host.thread.join(CLOSE_TIMEOUT_SECONDS)
    end = monotonic() + EXIT_TIMEOUT_SECONDS
    while _pools and not library_has_stopped() and monotonic() < end:
        sleep(0.01)


def library_has_stopped() -> bool:
    """Whether no thread of the library runs our code, or may call it later."""
    ours = {thread.ident for thread in threading.enumerate()}
    return not bindings.CALLBACKS and sys._current_frames().keys() <= ours


os.register_at_fork(after_in_child=_reset_after_fork)
atexit.register(_close_at_exit)


def send(network: Network, request: Request, is_write: bool = False) -> dict[str, Any]:
    """Send a request and return the response of the ledger.

    Unavailable `ledger_unavailable`, also once the call has waited LEDGER_TIMEOUT in
    all (core/work/waiting.py), Refused `ledger_refused`. A write that ends as
    Unavailable may have happened, or may still happen. Never call this inside a
    database transaction: its locks would last as long as the call.
    """
    network_reads.forbid_in_transaction()
    host = process_pools()
    # Reads and writes fail independently of each other.
    target = (network.genesis, is_write)
    if monotonic() < host.no_response_until.get(target, 0):
        raise no_response(network)
    seconds = seconds_left(settings.LEDGER_TIMEOUT)
    if not seconds:
        raise no_response(network)
    answer = asyncio.run_coroutine_threadsafe(
        host.submit(network.genesis, request), host.loop
    )
    try:
        with fair_pool.idle_thread():
            return answer.result(seconds)
    except TimeoutError:
        answer.cancel()
        # With little time left, a slow response does not mean that there is none.
        if seconds < settings.LEDGER_TIMEOUT / 2:
            raise no_response(network) from None
    except VdrError as error:
        if error.code == VdrErrorCode.POOL_REQUEST_FAILED:
            raise refused_error(network, error) from None
        logger.warning("%s does not respond: %s", network, error)
    host.no_response_until[target] = monotonic() + RETRY_DELAY_SECONDS
    raise no_response(network)


def no_response(network: Network) -> Unavailable:
    return Unavailable(
        "ledger_unavailable", f"{network} does not respond. Try again later."
    )


def refused_error(network: Network, error: VdrError) -> AgencyError:
    try:
        reason = json.loads(error.extra or "")["reason"]
    except (ValueError, TypeError, KeyError):
        reason = str(error)
    return Refused(
        "ledger_refused", f"{network} refused this: {' '.join(reason.split())[:400]}"
    )


def check_genesis(text: str) -> str:
    """Return the genesis without blank lines. Invalid `bad_genesis` if unreadable."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    genesis = "\n".join(lines) + "\n"
    is_readable = False
    if lines and len(genesis) <= MAX_GENESIS_BYTES:
        # In a process of its own, because the library may panic.
        with suppress(subprocess.TimeoutExpired):
            attempt = subprocess.run(
                [sys.executable, "-I", str(Path(try_genesis.__file__))],
                input=genesis.encode(errors="replace"),
                capture_output=True,
                check=False,
                timeout=GENESIS_CHECK_SECONDS,
            )
            is_readable = attempt.returncode == 0
    if not is_readable:
        message = (
            "That is not the genesis of an Indy network: "
            "one JSON transaction on each line."
        )
        raise Invalid("bad_genesis", message, {"genesis": [message]})
    return genesis
