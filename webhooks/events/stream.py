"""Live events, for all listeners of one process.

One query polls the new events of all organizations a few times per second, so no
listener needs its own database connection. A listener that starts at an older cursor,
or reads too slowly, catches up by reading pages of the feed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from core.errors import Invalid, TooMany, Unavailable
from core.telemetry import metrics
from tenants.models import ApiKey, Tenant
from webhooks.events import feed
from webhooks.events.feed import Position
from webhooks.events.models import Event

logger = logging.getLogger(__name__)
# Each thread uses a database connection. One polls, the others admit and catch up.
THREADS = 4
POLL_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0  # a client should reconnect after missing three
# The streams of a revoked key get nothing more, and end within this time.
KEY_CHECK_SECONDS = 2.0
RETRY_DELAY_SECONDS = 1.0  # after a failed poll
BATCH_SIZE = 500  # events per query
MAX_QUEUED = 1000  # messages; beyond this, a listener catches up from the database
REVOKED_MESSAGE = (
    b'event: end\ndata: {"code": "unauthorized", "message": "The key was revoked."}\n\n'
)


class Message(NamedTuple):
    """An event as a server-sent event, with the columns that filters compare."""

    position: Position
    tenant_id: UUID
    type: str
    object_id: str
    text: bytes


class Batch(NamedTuple):
    """The result of one query. `id_line` moves the client's cursor past it."""

    messages: list[Message]
    position: Position
    is_full: bool
    id_line: bytes


class Listener:
    """One open stream.

    filters: such as `{"type": "new_connection"}`. key_ids: of the keys that opened it.
    """

    def __init__(
        self,
        tenant: Tenant,
        key_ids: Sequence[UUID],
        start: Position,
        filters: dict[str, str],
    ) -> None:
        self.tenant = tenant
        self.key_ids = key_ids
        self.filters = filters
        self.position = start  # after the last event that was sent
        self.queue: deque[Message] = deque()
        self.needs_catch_up = True  # read from the database before the queue
        self.is_closed = False
        self.closing_message = b""  # sent last, when a key was revoked
        self.last_heartbeat = (feed.FIRST_POSITION, b"")
        self.admitted = asyncio.Event()  # set between two polls, see admit_joining()
        self.has_output = asyncio.Event()

    def enqueue(self, message: Message) -> None:
        """Queue a message that matches the filters, unless a catch-up will send it."""
        for name, value in self.filters.items():
            if getattr(message, name) != value:
                return
        if len(self.queue) >= MAX_QUEUED:
            self.queue.clear()
            self.needs_catch_up = True
        if not self.needs_catch_up:
            self.queue.append(message)
        self.has_output.set()

    def close(self, closing_message: bytes = b"") -> None:
        self.is_closed = True
        self.closing_message = closing_message
        self.admitted.set()
        self.has_output.set()

    def drain_queue(self) -> bytes:
        """Return the queued messages, then the heartbeat if its position is later."""
        # A catch-up may have sent some of them already.
        unsent = (one for one in self.queue if one.position > self.position)
        text = b"".join(message.text for message in unsent)
        if self.queue:
            self.position = max(self.position, self.queue[-1].position)
        self.queue.clear()
        position, id_line = self.last_heartbeat
        # A heartbeat moves the client's cursor, which must not skip a catch-up.
        if self.needs_catch_up or position <= self.position:
            return text
        self.position = position
        return text + id_line


class Broadcaster:
    """All listeners of the process, and the loop that reads events for them."""

    def __init__(
        self,
        poll_seconds: float = POLL_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        key_check_seconds: float = KEY_CHECK_SECONDS,
    ) -> None:
        self.poll_seconds = poll_seconds
        self.heartbeat_seconds = heartbeat_seconds
        self.key_check_seconds = key_check_seconds
        self.listeners: dict[UUID, set[Listener]] = {}  # by organization
        self.joining: set[Listener] = set()
        self.position: Position | None = None  # all events before it were queued
        self.has_joining = asyncio.Event()
        self.threads = ThreadPoolExecutor(THREADS, "stream")
        self.next_heartbeat = 0.0
        self.next_key_check = 0.0

    async def run_in_thread(
        self,
        function: Callable[..., Any],
        *arguments: Any,
    ) -> Any:
        """Run a function that reads the database, then release its connection."""

        def run_and_disconnect() -> Any:
            try:
                return function(*arguments)
            finally:
                connection.close()

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, run_and_disconnect)

    def all_listeners(self) -> list[Listener]:
        listeners = list(self.joining)
        for of_tenant in self.listeners.values():
            listeners += of_tenant
        return listeners

    def add_listener(self, listener: Listener) -> None:
        """Add a listener, which the next poll admits.

        Raises TooMany `too_many_listeners` for one organization with too many, and
        Unavailable `stream_full` if the process has too many.
        """
        others = self.all_listeners()
        if len(others) >= settings.STREAM_LISTENERS:
            message = "Too many listen already. Try again in a while."
            raise Unavailable("stream_full", message)
        own = sum(other.tenant.pk == listener.tenant.pk for other in others)
        if own >= settings.STREAM_LISTENERS_PER_TENANT:
            message = (
                f"{own} listeners of your organization are connected. Close one first."
            )
            raise TooMany("too_many_listeners", message)
        self.joining.add(listener)
        self.has_joining.set()
        metrics.set_stream_listeners(len(others) + 1)

    def remove_listener(self, listener: Listener) -> None:
        self.joining.discard(listener)
        of_tenant = self.listeners.get(listener.tenant.pk, set())
        of_tenant.discard(listener)
        if not of_tenant:
            self.listeners.pop(listener.tenant.pk, None)
        metrics.set_stream_listeners(len(self.all_listeners()))

    async def stream_to(self, listener: Listener) -> AsyncIterator[bytes]:
        """Yield the text of a listener's stream, until the listener is closed."""
        await listener.admitted.wait()
        while not listener.is_closed:
            while listener.needs_catch_up:
                # Reset it before reading, so that new messages are queued meanwhile.
                listener.needs_catch_up = False
                is_full = True
                while is_full and not listener.is_closed:
                    batch: Batch
                    batch, is_live = await self.run_in_thread(read_page_for, listener)
                    if not is_live:
                        listener.close(REVOKED_MESSAGE)
                        break
                    listener.position = batch.position
                    is_full = batch.is_full
                    texts = [message.text for message in batch.messages]
                    yield b"".join(texts) + batch.id_line
            listener.has_output.clear()
            if listener.is_closed:
                break
            if text := listener.drain_queue():
                yield text
            await listener.has_output.wait()
        yield listener.closing_message

    async def run(self) -> None:
        """Poll forever. Retry while the database is not available."""
        while True:
            try:
                await self.poll_once()
            except Exception:  # a bug must not end all streams
                logger.exception("no events are seen meanwhile")
                await asyncio.sleep(RETRY_DELAY_SECONDS)
            await asyncio.sleep(self.poll_seconds)

    async def poll_once(self) -> None:
        """Read the events since the last poll and queue them for the listeners.

        Without listeners it waits for the first one, and begins with the events from
        then on. One query serves all organizations; each event goes to the listeners
        of its organization.
        """
        if not self.all_listeners():
            self.position = None
            self.has_joining.clear()
            await self.has_joining.wait()
        if self.position is None:
            self.position = await self.run_in_thread(feed.parse_cursor, feed.FROM_NOW)
        self.admit_joining()
        tenants = list(self.listeners)
        events = Event.objects.filter(tenant__in=tenants, is_example=False)
        try:
            batch: Batch = await self.run_in_thread(read_batch, events, self.position)
        except Invalid:  # another epoch: the clients come again and are told
            self.close_all()
            self.position = None
            return
        # Once the events are read: what comes after a key was revoked is not sent.
        now = time.monotonic()
        if now >= self.next_key_check:
            self.next_key_check = now + self.key_check_seconds
            await self.close_with_revoked_keys(self.all_listeners())
        else:
            with_events = {message.tenant_id for message in batch.messages}
            await self.close_with_revoked_keys(
                [one for pk in with_events for one in self.listeners.get(pk, ())]
            )
        for message in batch.messages:
            for listener in self.listeners.get(message.tenant_id, ()):
                listener.enqueue(message)
        self.position = batch.position
        if now >= self.next_heartbeat:
            self.next_heartbeat = now + self.heartbeat_seconds
            for listener in self.all_listeners():
                listener.last_heartbeat = (batch.position, batch.id_line)
                listener.has_output.set()

    def admit_joining(self) -> None:
        """Admit new listeners. Must run between two polls.

        Their catch-up starts now, so the next poll finds all events after it.
        """
        for listener in self.joining:
            self.listeners.setdefault(listener.tenant.pk, set()).add(listener)
            listener.admitted.set()
        self.joining.clear()

    async def close_with_revoked_keys(self, listeners: Sequence[Listener]) -> None:
        if not listeners:
            return
        key_ids = {key_id for listener in listeners for key_id in listener.key_ids}
        live: set[UUID] = await self.run_in_thread(find_live_keys, key_ids)
        for listener in listeners:
            if not live.issuperset(listener.key_ids):
                listener.close(REVOKED_MESSAGE)

    def close_all(self) -> None:
        """End all streams. The clients reconnect elsewhere with their cursors."""
        for listener in self.all_listeners():
            listener.close()


def find_live_keys(key_ids: Iterable[UUID]) -> set[UUID]:
    """Return the ids of those keys that are neither revoked nor expired."""
    return set(ApiKey.live().filter(pk__in=key_ids).values_list("pk", flat=True))


def read_page_for(listener: Listener) -> tuple[Batch, bool]:
    """The next page of a catch-up, and whether the listener's keys are live after it.

    Only if they are may the page be sent.
    """
    events = feed.events_of(listener.tenant).filter(**listener.filters)
    batch = read_batch(events, listener.position)
    return batch, find_live_keys(listener.key_ids).issuperset(listener.key_ids)


def read_batch(events: "QuerySet[Event]", start: Position) -> Batch:
    page = feed.read_page(events, start, BATCH_SIZE)
    messages = []
    for event in page.events:
        position = feed.position_of(event)
        text = f"id: {feed.cursor_for(position)}\ndata: {event.body}\n\n"
        message = Message(
            position=position,
            tenant_id=event.tenant_id,
            type=event.type,
            object_id=event.object_id,
            text=text.encode(),
        )
        messages.append(message)
    return Batch(
        messages=messages,
        position=page.position,
        is_full=page.is_full,
        id_line=f"id: {feed.cursor_for(page.position)}\n\n".encode(),
    )
