"""What an issuance and a verification share: a thread on a connection, and how it is written."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Self, TypeVar

from django.db import models

from agency.core.errors import Conflict, PeerError, WrongState
from connections.didcomm.formats import HLINDY, VERSIONS, Wire, wire_of
from connections.didcomm.message import Message
from connections.messaging import outbox, router
from connections.models import Connection
from tenants import quotas
from webhooks.events.emit import EventSource


class Exchange(EventSource):
    """`wire_version` and `wire_format` are those of the last message that came, see Wire.

    Subclasses say in which states one is OPEN, and with which code it is ABANDONED.
    """

    OPEN: ClassVar[tuple[str, ...]]
    ABANDONED: ClassVar[str]

    connection = models.ForeignKey(Connection, on_delete=models.SET_NULL, null=True)
    thread_id = models.CharField(max_length=128)
    wire_version = models.CharField(max_length=3, default="1.0")
    wire_format = models.CharField(max_length=9, default=HLINDY)

    class Meta:
        abstract = True

    @property
    def wire(self) -> Wire:
        prefix = self.connection.message_prefix if self.connection else ""
        return Wire(prefix, self.wire_version, self.wire_format)

    @property
    def public_connection_id(self) -> str | None:
        return self.connection and self.connection.public_connection_id

    @classmethod
    def answered(cls, connection: Connection, message: Message, *roles: str) -> Self:
        """The exchange that a message goes on with, in one of these roles."""
        rows = cls.objects.select_related(
            "connection__my_key", "wallet", "tenant__network"
        )
        place = {"connection": connection, "thread_id": message.thread_id}
        found = rows.filter(**place, role__in=roles).first()
        if not found:
            raise PeerError(
                cls.ABANDONED, "there is no such exchange on this connection"
            )
        return found

    @classmethod
    def _in_thread(
        cls, connection: Connection, role: str, thread_id: str
    ) -> Self | None:
        """The row of this thread, if any. PeerError if we have another part in it."""
        row = cls.objects.filter(connection=connection, thread_id=thread_id).first()
        if row and row.role != role:
            raise PeerError(cls.ABANDONED, "the parts in this exchange are taken")
        return row

    @classmethod
    def decline_open(cls, connection: Connection) -> None:
        """Before the connection ends."""
        for exchange in cls.objects.filter(connection=connection, state__in=cls.OPEN):
            with suppress(WrongState):  # what was finished in this moment stays
                exchange.decline()

    @classmethod
    def go_on_elsewhere(cls, connection: Connection, to: Connection) -> None:
        """The other side knew us already: what an invitation of ours carried goes on there."""
        cls.objects.filter(connection=connection).update(connection=to)

    def insert_within_quota(self) -> None:
        """Saves a new row. 409 `quota_exceeded` if the organization has as many open exchanges as
        it may."""
        quotas.require_room(quotas.OPEN_EXCHANGES, self.tenant_id)  # type: ignore[attr-defined]
        self.save(force_insert=True)

    def _send(self, message: dict[str, Any]) -> None:
        if self.connection is None:
            raise Conflict("connection_gone", f"The connection of {self} was deleted.")
        outbox.enqueue(self.connection, message)


def as_written(message: Message) -> dict[str, str]:
    """The columns that remember how a received message was written."""
    wire = wire_of(message)
    return {"wire_version": wire.version, "wire_format": wire.format}


Row = TypeVar("Row", bound=Exchange)
ExchangeHandler = Callable[[Row, Message], None]


def handles_exchange(
    model: type[Row], protocol: str, name: str, *roles: str
) -> Callable[[ExchangeHandler[Row]], ExchangeHandler[Row]]:
    """Registers a function `(exchange, message)` for a message of an exchange, in both versions.

    The exchange is the one of the connection and the thread in which we have one of `roles`;
    without one the sender gets a problem report. The function may also be called by itself.
    """

    def register(function: ExchangeHandler[Row]) -> ExchangeHandler[Row]:
        def handle(connection: Connection, message: Message) -> None:
            function(model.answered(connection, message, *roles), message)

        for version in VERSIONS:
            router.handles(f"{protocol}/{version}/{name}")(handle)
        return function

    return register
