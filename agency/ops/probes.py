"""Probes of other services, which respond within a limited time even if one hangs."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connection

# So readiness and metrics respond within two seconds.
TIMEOUT_SECONDS = 1.5

T = TypeVar("T")


class Probe(Generic[T]):
    """Runs a check in a thread of its own, and not again while it is running.

    So a service that hangs costs one thread, a daemon, which does not keep the process
    from ending.
    """

    def __init__(self, check: Callable[[], T]) -> None:
        self.check = check
        self.future: Future[T] | None = None
        self.lock = Lock()

    def start(self) -> Future[T]:
        """The future result: wait for it for TIMEOUT_SECONDS."""
        with self.lock:
            if self.future is None or self.future.done():
                self.future = Future()
                Thread(target=self.run, args=[self.future], daemon=True).start()
            return self.future

    def run(self, future: Future[T]) -> None:
        try:
            result = self.check()
        except Exception as error:  # those who wait for the result get it
            connection.close()
            future.set_exception(error)
        else:
            connection.close()
            future.set_result(result)
