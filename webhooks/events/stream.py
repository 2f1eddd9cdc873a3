"""Events as they happen, for many listeners of one process, read by one query for all of them.

No listener holds a database connection: the hub looks for settled events a few times a second and
hands them out. A listener that begins at an older cursor, or was too slow for what it was handed,
reads pages of the feed until it has caught up.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection

from agency.core import metrics
from agency.core.errors import TooMany, Unavailable
from tenants.models import ApiKey, Tenant
from webhooks.events import feed
from webhooks.events.feed import Position
from webhooks.events.models import Event

logger = logging.getLogger(__name__)
THREADS = 4  # and so database connections: one looks, the others let in and catch up
POLL = 0.25  # seconds
HEARTBEAT = (
    10.0  # seconds; a client that hears nothing for three of them should come again
)
CHECK = 2.0  # seconds between looks at the keys of those who listen
REST = 1.0  # seconds in which a database that is away is left alone
BATCH = 500  # events of one query
WAITING = 1000  # events that a slow listener is handed before it must catch up
ENDED = (
    b'event: end\ndata: {"code": "unauthorized", "message": "The key was revoked."}\n\n'
)


class Message(NamedTuple):
    """An event as it is sent, and what filters ask for."""

    position: Position
    tenant_id: UUID
    type: str
    object_id: str
    text: bytes


class Seen(NamedTuple):
    """What a query found, and the cursor behind it, as messages and as text."""

    messages: list[Message]
    position: Position
    is_full: bool
    place: bytes


class Listener:
    """One open stream. `position` is behind the last event that it was sent.

    wanted: filters, as `{"type": "new_connection"}`. keys: the ids of the keys that opened it.
    """

    def __init__(
        self,
        tenant: Tenant,
        keys: Sequence[UUID],
        start: Position,
        wanted: dict[str, str],
    ):
        self.tenant, self.keys, self.position, self.wanted = tenant, keys, start, wanted
        self.waiting: deque[Message] = deque()
        self.is_behind, self.is_over = True, False
        self.farewell, self.heartbeat = b"", (feed.FIRST, b"")
        self.joined, self.news = asyncio.Event(), asyncio.Event()

    def hand(self, message: Message) -> None:
        """Who is behind finds it in the database."""
        if any(getattr(message, name) != value for name, value in self.wanted.items()):
            return
        if len(self.waiting) >= WAITING:
            self.waiting.clear()
            self.is_behind = True
        if not self.is_behind:
            self.waiting.append(message)
        self.news.set()

    def beat(self, position: Position, place: bytes) -> None:
        self.heartbeat = position, place
        self.news.set()

    def end(self, farewell: bytes = b"") -> None:
        self.is_over, self.farewell = True, farewell
        self.joined.set()
        self.news.set()

    def rows(self) -> Any:
        return feed.of(self.tenant).filter(**self.wanted)

    def taken(self) -> bytes:
        """What it was handed and has not read meanwhile; then, at the end of it, the heartbeat."""
        text = b"".join(
            one.text for one in self.waiting if one.position > self.position
        )
        if self.waiting:
            self.position = max(self.position, self.waiting[-1].position)
        self.waiting.clear()
        position, place = self.heartbeat
        if self.is_behind or position <= self.position:
            return text
        self.position = position
        return text + place


class Hub:
    """All listeners of the process."""

    def __init__(
        self, poll: float = POLL, heartbeat: float = HEARTBEAT, check: float = CHECK
    ):
        self.poll, self.heartbeat, self.check = poll, heartbeat, check
        self.listeners: dict[UUID, set[Listener]] = {}
        self.joining: set[Listener] = set()
        self.position: Position | None = None  # all before it was handed out
        self.wanted = asyncio.Event()
        self.pool = ThreadPoolExecutor(THREADS, "stream")
        self.next_beat = self.next_check = 0.0

    async def read(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs what reads the database in a thread, with a connection for that long only."""

        def run() -> Any:
            try:
                return function(*arguments)
            finally:
                connection.close()

        return await asyncio.get_running_loop().run_in_executor(self.pool, run)

    def all(self) -> list[Listener]:
        return [
            *self.joining,
            *(one for some in self.listeners.values() for one in some),
        ]

    def join(self, listener: Listener) -> None:
        """TooMany `too_many_listeners` or Unavailable `stream_full`."""
        everybody = self.all()
        if len(everybody) >= settings.STREAM_LISTENERS:
            raise Unavailable(
                "stream_full", "Too many listen already. Try again in a while."
            )
        own = sum(one.tenant.pk == listener.tenant.pk for one in everybody)
        if own >= settings.STREAM_LISTENERS_PER_TENANT:
            message = (
                f"{own} listeners of your organization are connected. Close one first."
            )
            raise TooMany("too_many_listeners", message)
        self.joining.add(listener)
        self.wanted.set()
        metrics.set_stream_listeners(len(everybody) + 1)

    def leave(self, listener: Listener) -> None:
        self.joining.discard(listener)
        some = self.listeners.get(listener.tenant.pk, set())
        some.discard(listener)
        if not some:
            self.listeners.pop(listener.tenant.pk, None)
        metrics.set_stream_listeners(len(self.all()))

    async def messages(self, listener: Listener) -> AsyncIterator[bytes]:
        """What is sent to one that has joined, until it is ended."""
        await listener.joined.wait()
        while not listener.is_over:
            while listener.is_behind:
                listener.is_behind = False  # what comes from now on is handed to it
                async for text in self.caught_up(listener):
                    yield text
            listener.news.clear()
            if text := listener.taken():
                yield text
            await listener.news.wait()
        yield listener.farewell

    async def caught_up(self, listener: Listener) -> AsyncIterator[bytes]:
        is_full = True
        while is_full and not listener.is_over:
            seen = await self.read(found, listener.rows(), listener.position)
            listener.position, is_full = seen.position, seen.is_full
            yield b"".join(one.text for one in seen.messages) + seen.place

    async def run(self) -> None:
        """For ever. A database that is away is waited for."""
        while True:
            try:
                await self.look()
            except Exception:  # a bug of ours must not end the stream of all listeners
                logger.exception("no events are seen meanwhile")
                await asyncio.sleep(REST)
            await asyncio.sleep(self.poll)

    async def look(self) -> None:
        """Hands out what has settled since the last time."""
        if not self.all():
            self.position = None
            self.wanted.clear()
            await self.wanted.wait()
        if self.position is None:
            self.position = await self.read(feed.position_at, feed.END)
        self.let_in()
        rows = Event.objects.filter(tenant__in=list(self.listeners), is_example=False)
        seen: Seen = await self.read(found, rows, self.position)
        for message in seen.messages:
            for listener in self.listeners.get(message.tenant_id, ()):
                listener.hand(message)
        self.position = seen.position
        await self.tend(seen)

    def let_in(self) -> None:
        """Between two looks: all that the next one finds is for them, the rest is behind them."""
        for listener in self.joining:
            self.listeners.setdefault(listener.tenant.pk, set()).add(listener)
            listener.joined.set()
        self.joining.clear()

    async def tend(self, seen: Seen) -> None:
        now = time.monotonic()
        if now >= self.next_beat:
            self.next_beat = now + self.heartbeat
            for listener in self.all():
                listener.beat(seen.position, seen.place)
        if now >= self.next_check:
            self.next_check = now + self.check
            everybody = self.all()
            live = await self.read(
                live_keys, {key for one in everybody for key in one.keys}
            )
            for listener in everybody:
                if not live.issuperset(listener.keys):
                    listener.end(ENDED)

    def close(self) -> None:
        """They come again elsewhere, where they stood."""
        for listener in self.all():
            listener.end()


def found(rows: Any, start: Position) -> Seen:
    page = feed.page(rows, start, BATCH)
    place = f"id: {feed.cursor_at(page.position)}\n\n".encode()
    return Seen(
        [message(event) for event in page.events], page.position, page.is_full, place
    )


def message(event: Event) -> Message:
    position = feed.position_of(event)
    text = f"id: {feed.cursor_at(position)}\ndata: {event.body}\n\n"
    return Message(
        position, event.tenant_id, event.type, event.object_id, text.encode()
    )


def live_keys(keys: set[UUID]) -> set[UUID]:
    return set(ApiKey.live().filter(pk__in=keys).values_list("pk", flat=True))
