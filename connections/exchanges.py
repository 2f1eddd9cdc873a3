"""What an issuance and a verification share: a thread on a connection, and how it is written."""

from typing import Any

from django.db import models

from agency.errors import Conflict
from connections.didcomm import transport
from connections.didcomm.exchange import HLINDY, Wire, wire_of
from connections.didcomm.message import Message
from connections.models import Connection
from webhooks.announcing import Announced


class Exchange(Announced):
    """`wire_version` and `wire_format` are those of the last message that came, see Wire."""

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

    def _send(self, message: dict[str, Any]) -> None:
        if self.connection is None:
            raise Conflict("connection_gone", f"The connection of {self} was deleted.")
        transport.send(self.connection, message)


def as_written(message: Message) -> dict[str, str]:
    """The columns that remember how a received message was written."""
    wire = wire_of(message)
    return {"wire_version": wire.version, "wire_format": wire.format}
