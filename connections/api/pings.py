"""Trust pings (RFC 0048): whether the other side of a connection still answers."""

from dataclasses import dataclass
from functools import partial

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from connections.api.connections import OrganizationView, get_connection
from connections.models import Connection
from connections.protocols import trust_ping
from core.api.long_poll import PREFER
from core.api.openapi.operation import operation
from core.api.serializers import Contract
from tenants.models import Scope
from wallets.api.wallets import WalletView


@dataclass(frozen=True)
class LastPing:
    """The last ping of a connection, for a reader that waits for its answer."""

    connection: Connection

    @property
    def awaits_peer(self) -> bool:
        connection = self.connection
        return bool(connection.pinged_at) and connection.ping_answered_at is None


class PingContract(Contract[LastPing]):
    """The last ping. Without `answeredAtUtc` it was not answered yet."""

    connectionId = serializers.CharField(source="connection.connection_id")
    sentAtUtc = serializers.DateTimeField(source="connection.pinged_at", required=False)
    answeredAtUtc = serializers.DateTimeField(
        source="connection.ping_answered_at", required=False
    )
    milliseconds = serializers.IntegerField(
        required=False, help_text="From the ping to its answer."
    )

    def get_milliseconds(self, ping: LastPing) -> int | None:
        connection = ping.connection
        if connection.pinged_at is None or connection.ping_answered_at is None:
            return None
        took = connection.ping_answered_at - connection.pinged_at
        return round(took.total_seconds() * 1000)


def ping(view: OrganizationView | WalletView, connection_id: str) -> Response:
    """Send a ping over a connection of the view's wallet. The response to the call."""
    view.perform(trust_ping.send_ping, get_connection(view.wallet, connection_id))
    # Read again: a peer hosted here has answered already.
    return view.to_response(PingContract, last_ping(view, connection_id))


def last_ping(view: OrganizationView | WalletView, connection_id: str) -> LastPing:
    return LastPing(get_connection(view.wallet, connection_id))


class Pings(OrganizationView):
    @operation("pingConnection", Scope.CONNECT, response=PingContract)
    def create(self, request: Request, connectionId: str) -> Response:
        return ping(self, connectionId)

    @operation(
        "getConnectionPing", Scope.READ, response=PingContract, parameters=[PREFER]
    )
    def retrieve(self, request: Request, connectionId: str) -> Response:
        return self.wait_for_change(
            PingContract, partial(last_ping, self, connectionId)
        )


class WalletPings(WalletView):
    @operation("pingWalletConnection", Scope.WALLETS, response=PingContract)
    def create(self, request: Request, walletId: str, connectionId: str) -> Response:
        return ping(self, connectionId)

    @operation(
        "getWalletConnectionPing",
        Scope.READ,
        response=PingContract,
        parameters=[PREFER],
    )
    def retrieve(self, request: Request, walletId: str, connectionId: str) -> Response:
        return self.wait_for_change(
            PingContract, partial(last_ping, self, connectionId)
        )
