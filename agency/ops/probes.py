"""Probes of other services, with a time limit for services that hang."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connection

# Readiness and metrics must respond within two seconds.
TIMEOUT_SECONDS = 1.5

T = TypeVar("T")


class Probe(Generic[T]):
    """Runs a check in a thread of its own, and never twice at the same time.

    So a service that hangs costs one thread. It is a daemon thread, which does not
    prevent the process from ending.
    """

    def __init__(self, check: Callable[[], T]) -> None:
        self.check = check
        self.future: Future[T] | None = None
        self.lock = Lock()

    def start(self) -> Future[T]:
        """Return the future of the result. Wait for it at most TIMEOUT_SECONDS."""
        with self.lock:
            if self.future is None or self.future.done():
                self.future = Future()
                Thread(target=self.run, args=[self.future], daemon=True).start()
            return self.future

    def run(self, future: Future[T]) -> None:
        try:
            result = self.check()
        except Exception as error:  # raised again by future.result()
            connection.close()
            future.set_exception(error)
        else:
            connection.close()
            future.set_result(result)
