"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run
