"""Clients that repeat a story over HTTP: `python -m bench.clients` (see load.py).

A process of its own with one event loop, one kept connection per client and no Django,
so that it costs as little as possible of the processors that it shares with the
server. Reads a job as one line of JSON from standard input: `story`, a name of STORIES,
and `clients`, the parameters of each. Prints `ready` once each client has done the
story once. Goes on until its standard input ends, then lets the clients finish and
prints the times of all stories as JSON: [start, end], in seconds of the system's
monotonic clock, which all processes share.
"""

import asyncio
import functools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.acapy_calls import AcapyPair, Webhooks
from bench.calls import POLICY, Call, Calls, Pair

Story = Callable[[], Awaitable[None]]
LINE_LIMIT = 2**20  # bytes of a head


class Client:
    """One kept connection to a server."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.parts = urlsplit(url)
        fields = {"Host": self.parts.netloc} | (headers or {})
        self.head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    async def call(self, call: Call) -> Any:
        """Return the JSON of the answer. Raises RuntimeError unless it is 200."""
        head = f"{call.method} {call.path} HTTP/1.1\r\n{self.head}"
        body = b""
        if call.method != "GET":
            kind = (
                "application/x-www-form-urlencoded" if call.form else "application/json"
            )
            body = (
                urlencode(call.form) if call.form else json.dumps(call.json or {})
            ).encode()
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        answer = await self.exchange(f"{head}\r\n".encode() + body)
        return json.loads(answer) if answer else None

    async def exchange(self, request: bytes) -> bytes:
        """Send a whole request, and return the body of its answer."""
        if not hasattr(self, "reader"):
            self.reader, self.writer = await asyncio.open_connection(
                self.parts.hostname, self.parts.port, limit=LINE_LIMIT
            )
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        body = await self.reader.readexactly(int(length))
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(f"{request!r}: {head!r} {body!r}")
        return body

    async def make(self, calls: Calls) -> None:
        """Make the calls of a story."""
        try:
            call = next(calls)
            while True:
                call = calls.send(await self.call(call))
        except StopIteration:
            return


def cycle_story(
    url: str,
    headers: dict[str, str],
    wallet: str,
    definition: str,
    policy: dict[str, Any] = POLICY,
) -> Story:
    """Return the story of a whole cycle, with connecting."""
    client, pair = Client(url, headers), Pair(wallet, definition)
    return lambda: client.make(pair.cycle(policy))


def exchange_story(
    url: str,
    headers: dict[str, str],
    wallet: str,
    definition: str,
    policy: dict[str, Any],
) -> Story:
    """Return the story of issuing and verifying, over one connection."""
    client, pair = Client(url, headers), Pair(wallet, definition)
    connected: list[bool] = []

    async def story() -> None:
        if not connected:
            await client.make(pair.connect())
            connected.append(True)
        await client.make(pair.exchange(policy))

    return story


def read_story(url: str, headers: dict[str, str], path: str) -> Story:
    """Return the story of one GET."""
    client = Client(url, headers)
    request = f"GET {path} HTTP/1.1\r\n{client.head}\r\n".encode()

    async def story() -> None:
        await client.exchange(request)

    return story


def acapy_cycle(issuer: str, holder: str, webhooks: int, definition: str) -> Story:
    """Return the story of a whole cycle between two agents of ACA-Py.

    webhooks: the port to which the issuer sends them.
    """
    told = webhooks_on(webhooks)
    return AcapyPair(Client(issuer), Client(holder), told, definition).cycle


@functools.cache
def webhooks_on(port: int) -> Webhooks:
    """Return the server of this port, which all clients of the process share."""
    return Webhooks(port)


STORIES = {
    "cycle": cycle_story,
    "exchange": exchange_story,
    "read": read_story,
    "acapy_cycle": acapy_cycle,
}


async def run_clients(
    name: str, clients: Sequence[dict[str, Any]]
) -> list[tuple[float, float]]:
    """Repeat the story by all clients until the standard input ends."""
    stories = [STORIES[name](**parameters) for parameters in clients]
    times: list[tuple[float, float]] = []
    ended = asyncio.Event()
    warm = [asyncio.Event() for _ in stories]

    async def repeat_until_ended(story: Story, is_warm: asyncio.Event) -> None:
        while not ended.is_set():
            started = time.monotonic()
            await story()
            times.append((started, time.monotonic()))
            is_warm.set()

    async def wait_for_end() -> None:
        for event in warm:
            await event.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        ended.set()

    # A group ends all at the first failure, which else would only slow the others.
    async with asyncio.TaskGroup() as group:
        group.create_task(wait_for_end())
        for story, is_warm in zip(stories, warm, strict=True):
            group.create_task(repeat_until_ended(story, is_warm))
    return times


if __name__ == "__main__":
    job = json.loads(sys.stdin.readline())
    print(json.dumps(asyncio.run(run_clients(job["story"], job["clients"]))))
