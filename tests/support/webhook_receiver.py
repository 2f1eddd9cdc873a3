"""Webhook receivers on loopback, and the worker that calls them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event as Signal
from threading import Semaphore
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connections
from django.utils import timezone

from core.database.uuids import smallest_uuid7, unix_milliseconds
from tests.support.http_servers import Call as HttpCall
from tests.support.http_servers import http_server
from webhooks.delivery.worker import DeliveryLoop
from webhooks.models import Attempt, Delivery, Event


class Call(NamedTuple):
    headers: dict[str, str]  # names in lower case
    data: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.data)

    @property
    def type(self) -> str:
        return self.body["message_type"]


class Receiver:
    """A receiver that records every call.

    answer: its response: (status, headers, body). meet: called with each call before
    the response. silent: it reads, and closes the connection only at the end. heard:
    once for each call that it has read without a response.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"OK")
        self.meet: Callable[[Call], None] = lambda call: None
        self.silent, self.heard, self.over = False, Semaphore(0), Signal()
        self.url = ""

    def answers(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.answer = (status, headers, body)

    @property
    def types(self) -> list[str]:
        return [call.type for call in self.calls]

    @property
    def events(self) -> list[tuple[str, str]]:
        """The (type, object id) of each call."""
        return [(call.type, call.body["object_id"]) for call in self.calls]

    def receive(self, call: HttpCall) -> None:
        headers = {name.lower(): value for name, value in call.headers.items()}
        self.calls.append(Call(headers, call.read()))
        try:
            self.meet(self.calls[-1])
        finally:
            # The connection of this thread: else the pool loses it.
            connections.close_all()
        if self.silent:
            self.heard.release()
            self.over.wait(30)
            call.close_connection = True
            return
        status, headers, body = self.answer
        call.answer(status, body, **headers)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    with http_server(receiver.receive) as server:
        receiver.url = f"{server.url}/hooks"
        try:
            yield receiver
        finally:
            receiver.over.set()


def worker_calls() -> None:
    """Make all due calls as the worker does. Returns when none is left."""
    DeliveryLoop().run()


def send_example(organization: Any, webhook: dict[str, Any]) -> Delivery:
    """Send an example to a webhook, without calling it yet."""
    path = f"/webhooks/{webhook['id']}/example"
    made = organization.post(path, {"messageType": "verification"})
    return Delivery.objects.get(pk=made["deliveryId"])


def call_example(organization: Any, webhook: dict[str, Any]) -> Delivery:
    """Send an example and make its first call. Return the delivery."""
    row = send_example(organization, webhook)
    worker_calls()
    row.refresh_from_db()
    return row


def time_passes(**much: float) -> None:
    """Move the times of all pending deliveries into the past by this duration."""
    gone = timedelta(**much)
    for row in Delivery.pending():
        row.due_at -= gone
        row.lease_until = row.lease_until and row.lease_until - gone
        row.blocks_until = row.blocks_until and row.blocks_until - gone
        row.save(update_fields=["due_at", "lease_until", "blocks_until"])


def days_pass(days: float) -> None:
    """Make all events, deliveries and attempts older: their ids contain a time."""
    moment = unix_milliseconds(timezone.now() - timedelta(days=days))
    for number, event in enumerate(Event.objects.order_by("pk")):
        aged = first_of(moment, number)
        Event.objects.filter(pk=event.pk).update(id=aged)
        Delivery.objects.filter(event=event.pk).update(event=aged)
    for number, row in enumerate(Delivery.objects.order_by("pk")):
        Delivery.objects.filter(pk=row.pk).update(id=first_of(moment, number))
    for number, attempt in enumerate(Attempt.objects.order_by("pk")):
        Attempt.objects.filter(pk=attempt.pk).update(id=first_of(moment, number))


def first_of(moment: int, number: int) -> UUID:
    return UUID(int=smallest_uuid7(moment).int + number)


def waits(row: Delivery) -> float:
    """Return the seconds until the delivery is due."""
    return (row.due_at - timezone.now()).total_seconds()
