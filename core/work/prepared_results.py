"""Results that a transaction computes before it locks anything, and uses later.

Between two wallets hosted here, one transaction does what both parties do, and the
cryptography of the second one takes longer than all statements. Meanwhile the rows
would be locked, and the feed of events would wait for the transaction
(webhooks/events/feed.py). So the first party calls the same functions beforehand:

    with preparing():
        sign(definition, request)  # computed
    credential.lock()
    ...
    sign(definition, request)  # the same arguments: the result from above

Nothing is decided by it. A call with any other argument computes its own result.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

Result = TypeVar("Result")
Given = ParamSpec("Given")
_local = threading.local()


class _Prepared(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: Any


def preparable(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function whose results may be prepared.

    The result depends on nothing but the arguments, which are given by position, and
    nobody modifies it.
    """

    @wraps(function)
    def found_or_computed(*arguments: Given.args, **named: Given.kwargs) -> Result:
        kept: list[_Prepared] = getattr(_local, "results", [])
        for one in () if named else kept:
            if one.function is function and one.arguments == arguments:
                return one.result
        result = function(*arguments, **named)
        if getattr(_local, "is_preparing", False) and not named:
            kept.append(_Prepared(function, arguments, result))
            _local.results = kept
        return result

    return found_or_computed


@contextmanager
def preparing() -> Iterator[None]:
    """Keep what preparable functions return in this block, until forget_all()."""
    _local.is_preparing = True
    try:
        yield
    finally:
        _local.is_preparing = False


def forget_all() -> None:
    """Called at the end of each transaction of this thread."""
    _local.results = []
