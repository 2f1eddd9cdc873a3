"""The protocols of one connection: versions, a new key, its end."""

from rest_framework import serializers

from connections.api.connections import OrganizationView, get_connection
from connections.models import Connection
from connections.protocols import did_rotate
from core.api.openapi.operation import operation
from core.api.serializers import Contract, Parameters, drop_nulls, format_utc
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

    def validate(self, data):
        if not data:
            missing = "Give this or attachmentFormat."
            raise serializers.ValidationError({"exchangeVersion": [missing]})
        return data


class ProtocolContract(Contract):
    """The protocols and versions that are used on a connection."""

    connectionId = serializers.CharField()
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
    endedAtUtc = serializers.DateTimeField(required=False)

    def to_representation(self, connection):
        issuing = connection.message_format_for("issue-credential")
        proving = connection.message_format_for("present-proof")
        return drop_nulls(
            connectionId=connection.connection_id,
            handshake=connection.handshake or None,
            exchangeVersion=connection.exchange_version or AUTO,
            attachmentFormat=connection.attachment_format or AUTO,
            issueCredential=issuing.version,
            presentProof=proving.version,
            disclosed=connection.disclosed,
            rotationPending=bool(connection.rotation_id),
            endedAtUtc=format_utc(connection.left_at),
        )


def choose_protocols(view, connection):
    """Set what the body of the view's request chooses. What it leaves out stays."""
    body = view.parse_body(ProtocolParameters)
    chosen = {
        COLUMNS[name]: "" if value == AUTO else value for name, value in body.items()
    }
    view.perform(connection.update_columns, **chosen)


def show_protocols(view, connection_id):
    connection = get_connection(view.wallet, connection_id)
    return view.to_response(ProtocolContract, connection)


class Protocols(OrganizationView):
    @operation("getConnectionProtocols", Scope.READ, response=ProtocolContract)
    def retrieve(self, request, connectionId):
        return show_protocols(self, connectionId)

    @operation(
        "setConnectionProtocols",
        Scope.CONNECT,
        request=ProtocolParameters,
        response=ProtocolContract,
    )
    def update(self, request, connectionId):
        choose_protocols(self, get_connection(self.wallet, connectionId))
        return self.retrieve(request, connectionId)

    @operation(
        "rotateConnection", Scope.CONNECT, response=ProtocolContract, irreversible=True
    )
    def rotate(self, request, connectionId):
        self.perform(did_rotate.rotate, get_connection(self.wallet, connectionId))
        # Reads again: a peer hosted here has agreed already.
        return self.retrieve(request, connectionId)

    @operation(
        "endConnection", Scope.CONNECT, response=ProtocolContract, irreversible=True
    )
    def end(self, request, connectionId):
        self.perform(get_connection(self.wallet, connectionId).end)
        return self.retrieve(request, connectionId)


class WalletProtocols(WalletView):
    @operation("getWalletConnectionProtocols", Scope.READ, response=ProtocolContract)
    def retrieve(self, request, walletId, connectionId):
        return show_protocols(self, connectionId)

    @operation(
        "setWalletConnectionProtocols",
        Scope.WALLETS,
        request=ProtocolParameters,
        response=ProtocolContract,
    )
    def update(self, request, walletId, connectionId):
        choose_protocols(self, get_connection(self.wallet, connectionId))
        return self.retrieve(request, walletId, connectionId)
