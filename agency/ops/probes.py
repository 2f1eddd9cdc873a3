"""Questions whose answer is awaited for a bounded time, whatever hangs."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connection

# Seconds: so readiness and metrics answer within two.
PATIENCE = 1.5

T = TypeVar("T")


class Probe(Generic[T]):
    """Asks in a thread of its own. As long as an answer is open it is not asked again: a part that
    hangs costs one thread, which does not keep the process from ending."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self.ask = ask
        self.open: Future[T] | None = None
        self.lock = Lock()

    def start(self) -> Future[T]:
        """The answer to come: await it with PATIENCE."""
        with self.lock:
            if self.open is None or self.open.done():
                self.open = Future()
                Thread(target=self.run, args=[self.open], daemon=True).start()
            return self.open

    def run(self, future: Future[T]) -> None:
        try:
            answer = self.ask()
        except (
            Exception
        ) as error:  # whatever it is, those who wait for the answer get it
            connection.close()
            future.set_exception(error)
        else:
            connection.close()
            future.set_result(answer)
