"""The Indy ledgers as this process reaches them: all pools live on one thread with an event loop.

Callers wait for their answer, at most LEDGER_TIMEOUT seconds. A pool is opened when it is first
needed, in each process for itself: after a fork the child begins anew and lets the parent's alone
(closing one of them there would wait for a thread that the child does not have). All are closed
before a process ends: a thread of the library that calls back after that aborts it.
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

from agency.core import fair_pool, network_reads
from agency.core.errors import AgencyError, Conflict, Invalid, Unavailable
from credentials.ledgers.indy import try_genesis
from tenants.models import Network

logger = logging.getLogger(__name__)
PAUSE = 5.0  # seconds for which a ledger that gave no answer is not asked again
READ_FROM = 4  # validators asked at once; the library's 2 cost 5 s when both are away
GENESIS_BYTES = 512 * 1024
SECONDS_TO_READ = 10
SECONDS_TO_CLOSE = (
    6  # the library waits for its open connections, which last 5 s at most
)
SECONDS_TO_LEAVE = (
    30  # in which the library calls back whatever was asked; most often 5
)


class Refused(Conflict):
    """The ledger answered that it does not take this write."""


class Pools:
    """The thread with its loop, the pools by their genesis, and who gave no answer lately."""

    def __init__(self) -> None:
        set_config({"request_read_nodes": READ_FROM})
        self.loop = asyncio.new_event_loop()
        self.opened: dict[str, asyncio.Task[Pool]] = {}
        self.silent_until: dict[tuple[str, bool], float] = {}
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="indy-pools", daemon=True
        )
        self.thread.start()

    async def submit(self, genesis: str, request: Request) -> dict[str, Any]:
        pool = await asyncio.shield(self.open(genesis))
        return await pool.submit_request(request)

    def open(self, genesis: str) -> "asyncio.Task[Pool]":
        """The pool, or the attempt to open it that is under way; one that failed is not kept."""
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

    def abandon(self) -> None:
        """Makes the library's objects close nothing when they go."""
        for task in self.opened.values():
            if task.done() and not task.cancelled() and not task.exception():
                task.result().handle = None

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


def pools() -> Pools:
    with _lock:
        if not _pools:
            _pools.append(Pools())
        return _pools[0]


def _begin_anew() -> None:
    global _lock
    _lock = threading.Lock()
    for host in _pools:
        host.abandon()
    _of_the_parent.extend(_pools)
    _pools.clear()


def _end() -> None:
    for host in _pools:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(host.close(), host.loop).result(
                SECONDS_TO_CLOSE
            )
        host.loop.call_soon_threadsafe(host.loop.stop)
        host.thread.join(SECONDS_TO_CLOSE)
    end = monotonic() + SECONDS_TO_LEAVE
    while _pools and not has_left() and monotonic() < end:
        sleep(0.01)


def has_left() -> bool:
    """Whether no thread of the library is in our code, or will call it yet."""
    ours = {thread.ident for thread in threading.enumerate()}
    return not bindings.CALLBACKS and sys._current_frames().keys() <= ours


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_end)


def send(network: Network, request: Request, is_write: bool = False) -> dict[str, Any]:
    """The ledger's answer. Unavailable `ledger_unavailable`, Refused `ledger_refused`.

    A write that ends as Unavailable may have happened, or happen yet. Never in a transaction of the
    database, whose locks would last as long as the call.
    """
    network_reads.forbid_in_transaction()
    host, lane = pools(), (network.genesis, is_write)
    if monotonic() < host.silent_until.get(lane, 0):
        raise silent(network)
    answer = asyncio.run_coroutine_threadsafe(
        host.submit(network.genesis, request), host.loop
    )
    try:
        with fair_pool.idle_thread():
            return answer.result(settings.LEDGER_TIMEOUT)
    except TimeoutError:
        answer.cancel()
    except VdrError as error:
        if error.code == VdrErrorCode.POOL_REQUEST_FAILED:
            raise refused(network, error) from None
        logger.warning("%s gives no answer: %s", network, error)
    host.silent_until[lane] = monotonic() + PAUSE
    raise silent(network)


def silent(network: Network) -> Unavailable:
    return Unavailable(
        "ledger_unavailable", f"{network} gives no answer. Try again later."
    )


def refused(network: Network, error: VdrError) -> AgencyError:
    try:
        reason = json.loads(error.extra or "")["reason"]
    except (ValueError, TypeError, KeyError):
        reason = str(error)
    return Refused(
        "ledger_refused", f"{network} refused this: {' '.join(reason.split())[:400]}"
    )


def check_genesis(text: str) -> str:
    """The genesis without blank lines; Invalid `bad_genesis` if the library cannot read it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    genesis = "\n".join(lines) + "\n"
    if not lines or len(genesis) > GENESIS_BYTES or not is_readable(genesis):
        message = "That is not the genesis of an Indy network: one JSON transaction on each line."
        raise Invalid("bad_genesis", message, {"genesis": [message]})
    return genesis


def is_readable(genesis: str) -> bool:
    command = [sys.executable, "-I", str(Path(try_genesis.__file__))]
    text = genesis.encode(errors="replace")
    try:
        attempt = subprocess.run(
            command,
            input=text,
            capture_output=True,
            check=False,
            timeout=SECONDS_TO_READ,
        )
    except subprocess.TimeoutExpired:
        return False
    return attempt.returncode == 0
