"""The base of issuances and verifications: a thread of messages on a connection."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Self, TypeVar

from django.db import models

from agency.core.errors import Conflict, PeerError, WrongState
from connections.didcomm.formats import HLINDY, VERSIONS, MessageFormat, format_of
from connections.didcomm.message import Message
from connections.messaging import outbox, router
from connections.models import Connection
from tenants import quotas
from webhooks.events.emit import EventSource


class Exchange(EventSource):
    """`wire_version` and `wire_format` are those of the last received message, see MessageFormat.

    OPEN: the states in which the exchange goes on. ABANDONED: the code of problem reports in it.
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
    def message_format(self) -> MessageFormat:
        prefix = self.connection.message_prefix if self.connection else ""
        return MessageFormat(prefix, self.wire_version, self.wire_format)

    @property
    def public_connection_id(self) -> str | None:
        return self.connection and self.connection.public_connection_id

    @classmethod
    def for_thread(cls, connection: Connection, message: Message, *roles: str) -> Self:
        """The exchange of a message's thread, in one of these roles. PeerError if there is none."""
        rows = cls.objects.select_related(
            "connection__my_key", "wallet", "tenant__network"
        )
        found = rows.filter(
            connection=connection, thread_id=message.thread_id, role__in=roles
        ).first()
        if not found:
            raise PeerError(
                cls.ABANDONED, "there is no such exchange on this connection"
            )
        return found

    @classmethod
    def find_in_thread(
        cls, connection: Connection, role: str, thread_id: str
    ) -> Self | None:
        """The row of this thread, if any. PeerError if we have the other role in it."""
        row = cls.objects.filter(connection=connection, thread_id=thread_id).first()
        if row and row.role != role:
            raise PeerError(cls.ABANDONED, "we have the other role in this thread")
        return row

    @classmethod
    def decline_open(cls, connection: Connection) -> None:
        """Decline what is open on a connection that is about to end."""
        for exchange in cls.objects.filter(connection=connection, state__in=cls.OPEN):
            with suppress(WrongState):  # it was finished meanwhile, and stays
                exchange.decline()

    @classmethod
    def move_to_connection(cls, connection: Connection, to: Connection) -> None:
        """The peer was connected already: what our invitation carried moves to that connection."""
        cls.objects.filter(connection=connection).update(connection=to)

    def insert_within_quota(self) -> None:
        """Save a new row. 409 `quota_exceeded` if the organization has as many open exchanges as
        it may."""
        quotas.require_room(quotas.OPEN_EXCHANGES, self.tenant_id)  # type: ignore[attr-defined]
        self.save(force_insert=True)

    def send_message(self, message: dict[str, Any]) -> None:
        """Enqueue a message to the peer. 409 `connection_gone` without a connection."""
        if self.connection is None:
            raise Conflict("connection_gone", f"The connection of {self} was deleted.")
        outbox.enqueue(self.connection, message)


def format_columns(message: Message) -> dict[str, str]:
    """The columns that remember how a received message was written."""
    message_format = format_of(message)
    return {
        "wire_version": message_format.version,
        "wire_format": message_format.format,
    }


Row = TypeVar("Row", bound=Exchange)
ExchangeHandler = Callable[[Row, Message], None]


def handles_exchange(
    model: type[Row], protocol: str, name: str, *roles: str
) -> Callable[[ExchangeHandler[Row]], ExchangeHandler[Row]]:
    """Register a function `(exchange, message)` for a message of an exchange, in both versions.

    The exchange is the one of the connection and the thread in which we have one of `roles`;
    without one the sender gets a problem report. The function itself may also be called.
    """

    def register(function: ExchangeHandler[Row]) -> ExchangeHandler[Row]:
        def handle(connection: Connection, message: Message) -> None:
            function(model.for_thread(connection, message, *roles), message)

        for version in VERSIONS:
            router.handles(f"{protocol}/{version}/{name}")(handle)
        return function

    return register
