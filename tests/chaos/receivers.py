"""Receivers of webhooks that behave as receivers do, and remember every call."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import NamedTuple

from tests.support.http_servers import Call as HttpCall
from tests.support.http_servers import http_server

HUGE = b"x" * 10_000_000
SILENT, CLOSED = -1, 0  # in place of a status: never answered, hung up on


class Call(NamedTuple):
    receiver: str  # organization/behaviour
    id: str
    data: bytes
    status: int
    at: float


class Receivers:
    """One server for all; a call's path says which receiver it is for."""

    def __init__(self, seed: int) -> None:
        self.random, self.lock = random.Random(seed), Lock()
        self.calls: list[Call] = []
        self.healthy, self.over = False, Event()
        self.hangs = False  # from now on, whoever is called
        self.url = ""

    def heal(self) -> None:
        """From now on all answer 200, at once."""
        self.healthy = True
        self.over.set()

    def receive(self, call: HttpCall) -> None:
        data = call.read()
        with self.lock:
            name = call.path.strip("/")
            status, headers, body = self.mood(name.rpartition("/")[2])
            mine = Call(name, call.headers["webhook-id"], data, status, time.time())
            self.calls.append(mine)
        if status == SILENT:
            self.over.wait(60)
        if status in (SILENT, CLOSED):
            call.close_connection = True
        else:
            call.answer(status, body, **headers)

    def mood(self, behaviour: str) -> tuple[int, dict[str, str], bytes]:
        """What is answered now: status, headers, body."""
        often, now_and_then = self.random.random() < 0.4, self.random.random() < 0.1
        if self.hangs:
            return SILENT, {}, b""
        if self.healthy:
            return 200, {}, b"OK"
        if behaviour == "huge":
            return (500 if often else 200), {}, HUGE
        moods: dict[str, tuple[bool, int, dict[str, str]]] = {
            "failing": (often, 500, {}),
            "throttling": (often, 429, {"Retry_After": "1"}),
            "gone": (now_and_then, 410, {}),
            "moved": (often, 302, {"Location": f"{self.url}/trap"}),
            "hanging": (often, SILENT, {}),
            "mute": (True, SILENT, {}),
            "closing": (often, CLOSED, {}),
        }
        misbehaves, status, headers = moods.get(behaviour, (False, 200, {}))
        return (status, headers, b"") if misbehaves else (200, {}, b"OK")


@contextmanager
def receiving(seed: int) -> Iterator[Receivers]:
    receivers = Receivers(seed)
    with http_server(receivers.receive) as server:
        receivers.url = server.url
        try:
            yield receivers
        finally:
            receivers.over.set()
