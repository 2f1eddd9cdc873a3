"""One time limit for all that a call waits for: ledgers, and keys that are made.

Each wait of its own has a limit too. A call that needs several of them, as a schema,
a definition and a registry do, would else wait for the sum.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

_local = threading.local()


@contextmanager
def limit_waiting(seconds: float) -> Iterator[None]:
    """Let all waits of this thread in the block end `seconds` from now.

    Within another block, the earlier end counts.
    """
    outer = getattr(_local, "end", None)
    end = monotonic() + seconds
    _local.end = end if outer is None else min(end, outer)
    try:
        yield
    finally:
        _local.end = outer


def seconds_left(at_most: float) -> float:
    """The seconds that a wait may take: `at_most`, or less, and 0 at the end.

    Outside of a block, as in workers, `at_most`.
    """
    end = getattr(_local, "end", None)
    return at_most if end is None else max(0.0, min(at_most, end - monotonic()))
