"""One time limit for what a call waits for: ledgers, peers, what it reads over http.

Each wait of its own has a limit too. A call that needs several of them, as a schema,
a definition and a registry do, would else wait for the sum. The wait for a key counts
where a ledger is written to next. Other waits have a limit of their own only: for a
key on the local network (wallets/key_pool.py), for its turn to publish a revocation
list (credentials/revocation.py), and `Prefer: wait` (core/api/long_poll.py).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from django.conf import settings

from core.call import this_call

PAUSE_SECONDS = 0.05
# At most half of the threads of a process wait for peers.
peer_slots = threading.BoundedSemaphore(settings.WEB_THREADS // 2)


@contextmanager
def limit_waiting(seconds: float) -> Iterator[None]:
    """Let all waits of this thread in the block end `seconds` from now.

    Within another block, the earlier end counts.
    """
    outer = this_call.deadline
    end = monotonic() + seconds
    this_call.deadline = end if outer is None else min(end, outer)
    try:
        yield
    finally:
        this_call.deadline = outer


def seconds_left(at_most: float) -> float:
    """Return the seconds that a wait may take: `at_most`, or less, and 0 at the end.

    The end is that of limit_waiting(). Outside of its block, as in workers, `at_most`.
    """
    end = this_call.deadline
    return at_most if end is None else max(0.0, min(at_most, end - monotonic()))


@contextmanager
def take_peer_slot() -> Iterator[bool]:
    """Let this thread wait for a peer in the block.

    Yields False if half of the threads wait already: then it may not.
    """
    is_free = peer_slots.acquire(blocking=False)
    try:
        yield is_free
    finally:
        if is_free:
            peer_slots.release()


def poll_for_peer(is_done: Callable[[], bool], at_most: float) -> None:
    """Wait until a peer has done something: `at_most` seconds, or what is left.

    Not at all if half of the threads wait already. Keeps the database connection.
    """
    with take_peer_slot() as is_free:
        end = monotonic() + seconds_left(at_most)
        while is_free and monotonic() < end and not is_done():
            sleep(PAUSE_SECONDS)
