"""The protocols of one connection: versions, a new key, its end."""

from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from connections.api.connections import OrganizationView, get_connection
from connections.models import Connection
from connections.protocols import did_rotate
from core.api.openapi.operation import operation
from core.api.serializers import Contract, Parameters
from core.api.views import View
from tenants.models import Scope
from wallets.api.wallets import WalletView

AUTO = "auto"
EXCHANGE_VERSIONS = [AUTO, *Connection.Version.values]
ATTACHMENT_FORMATS = [AUTO, *Connection.Format.values]
COLUMNS = {
    "exchangeVersion": "exchange_version",
    "attachmentFormat": "attachment_format",
}


class ProtocolParameters(Parameters):
    aliases = {
        "exchange_version": "exchangeVersion",
        "attachment_format": "attachmentFormat",
    }

    exchangeVersion = serializers.ChoiceField(
        EXCHANGE_VERSIONS,
        required=False,
        help_text="Of issue-credential and present-proof in new exchanges; `auto`: "
        "what the peer spoke last or says it speaks.",
    )
    attachmentFormat = serializers.ChoiceField(
        ATTACHMENT_FORMATS,
        required=False,
        help_text="Of new exchanges in 2.0, which it implies; `auto`: what the peer "
        "used last, else `hlindy`.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if not data:
            missing = "Give this or attachmentFormat."
            raise serializers.ValidationError({"exchangeVersion": [missing]})
        return data


class ProtocolContract(Contract[Connection]):
    """The protocols and versions that are used on a connection."""

    connectionId = serializers.CharField(source="connection_id")
    handshake = serializers.CharField(
        required=False, help_text="The protocol it was made by."
    )
    exchangeVersion = serializers.ChoiceField(EXCHANGE_VERSIONS)
    attachmentFormat = serializers.ChoiceField(ATTACHMENT_FORMATS)
    issueCredential = serializers.CharField(help_text="The version of the next offer.")
    presentProof = serializers.CharField(help_text="The version of the next request.")
    disclosed = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the peer says it speaks, if it said so.",
    )
    rotationPending = serializers.BooleanField(
        help_text="Whether the peer has still to agree to a new key of ours."
    )
    endedAtUtc = serializers.DateTimeField(source="left_at", required=False)

    def get_exchangeVersion(self, connection: Connection) -> str:
        return connection.exchange_version or AUTO

    def get_attachmentFormat(self, connection: Connection) -> str:
        return connection.attachment_format or AUTO

    def get_issueCredential(self, connection: Connection) -> str:
        return connection.message_format_for("issue-credential").version

    def get_presentProof(self, connection: Connection) -> str:
        return connection.message_format_for("present-proof").version

    def get_rotationPending(self, connection: Connection) -> bool:
        return bool(connection.rotation_id)


def choose_protocols(view: View, connection: Connection) -> None:
    """Set what the body of the view's request chooses. What it leaves out stays."""
    body = view.parse_body(ProtocolParameters)
    chosen = {
        COLUMNS[name]: "" if value == AUTO else value for name, value in body.items()
    }
    view.perform(partial(connection.update_columns, **chosen))


def show_protocols(view: OrganizationView | WalletView, connection_id: str) -> Response:
    connection = get_connection(view.wallet, connection_id)
    return view.to_response(ProtocolContract, connection)


class Protocols(OrganizationView):
    @operation("getConnectionProtocols", Scope.READ, response=ProtocolContract)
    def retrieve(self, request: Request, connectionId: str) -> Response:
        return show_protocols(self, connectionId)

    @operation(
        "setConnectionProtocols",
        Scope.CONNECT,
        request=ProtocolParameters,
        response=ProtocolContract,
    )
    def update(self, request: Request, connectionId: str) -> Response:
        choose_protocols(self, get_connection(self.wallet, connectionId))
        return self.retrieve(request, connectionId)

    @operation(
        "rotateConnection", Scope.CONNECT, response=ProtocolContract, irreversible=True
    )
    def rotate(self, request: Request, connectionId: str) -> Response:
        self.perform(did_rotate.rotate, get_connection(self.wallet, connectionId))
        # Reads again: a peer hosted here has agreed already.
        return self.retrieve(request, connectionId)

    @operation(
        "endConnection", Scope.CONNECT, response=ProtocolContract, irreversible=True
    )
    def end(self, request: Request, connectionId: str) -> Response:
        self.perform(get_connection(self.wallet, connectionId).end)
        return self.retrieve(request, connectionId)


class WalletProtocols(WalletView):
    @operation("getWalletConnectionProtocols", Scope.READ, response=ProtocolContract)
    def retrieve(self, request: Request, walletId: str, connectionId: str) -> Response:
        return show_protocols(self, connectionId)

    @operation(
        "setWalletConnectionProtocols",
        Scope.WALLETS,
        request=ProtocolParameters,
        response=ProtocolContract,
    )
    def update(self, request: Request, walletId: str, connectionId: str) -> Response:
        choose_protocols(self, get_connection(self.wallet, connectionId))
        return self.retrieve(request, walletId, connectionId)
