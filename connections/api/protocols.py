"""How one connection is spoken: versions, a new key, its end."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers

from agency.api.serializers import Contract, Parameters, drop_nulls, format_utc
from connections.api.connections import OrganizationView, one
from connections.models import Connection

AUTO = "auto"
EXCHANGE_VERSIONS = [AUTO, *Connection.Version.values]
SPOKEN = OpenApiExample(
    "A modern agent",
    {
        "connectionId": "0196f3a1-1111-7000-8000-000000000002",
        "handshake": "didexchange/1.1",
        "exchangeVersion": "auto",
        "issueCredential": "2.0",
        "presentProof": "2.0",
        "disclosed": ["basicmessage/1.0", "issue-credential/2.0", "present-proof/2.0"],
        "rotationPending": False,
    },
    response_only=True,
)


class ProtocolParameters(Parameters):
    aliases = {"exchange_version": "exchangeVersion"}

    exchangeVersion = serializers.ChoiceField(
        EXCHANGE_VERSIONS,
        help_text="Of issue-credential and present-proof in new exchanges; `auto`: what the peer "
        "spoke last or says it speaks.",
    )


class ProtocolContract(Contract):
    """How a connection is spoken."""

    connectionId = serializers.CharField()
    handshake = serializers.CharField(
        required=False, help_text="The protocol it was made by."
    )
    exchangeVersion = serializers.ChoiceField(EXCHANGE_VERSIONS)
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
        return drop_nulls(
            connectionId=connection.connection_id,
            handshake=connection.handshake or None,
            exchangeVersion=connection.exchange_version or AUTO,
            issueCredential=connection.wire_for("issue-credential").version,
            presentProof=connection.wire_for("present-proof").version,
            disclosed=connection.disclosed,
            rotationPending=bool(connection.rotation_id),
            endedAtUtc=format_utc(connection.left_at),
        )


@extend_schema(tags=["Connections"])
class Protocols(OrganizationView):
    @extend_schema(
        operation_id="getConnectionProtocols",
        summary="See how a connection is spoken",
        responses=ProtocolContract,
        examples=[SPOKEN],
    )
    def retrieve(self, request, connectionId):
        return self.to_response(ProtocolContract, one(self.wallet, connectionId))

    @extend_schema(
        operation_id="setConnectionProtocols",
        summary="Choose the version of new exchanges",
        request=ProtocolParameters,
        responses=ProtocolContract,
        examples=[
            OpenApiExample("Version 2", {"exchangeVersion": "2.0"}, request_only=True),
            SPOKEN,
        ],
    )
    def update(self, request, connectionId):
        connection = one(self.wallet, connectionId)
        chosen = self.parse_body(ProtocolParameters)["exchangeVersion"]
        self.perform(connection.choose_version, "" if chosen == AUTO else chosen)
        return self.retrieve(request, connectionId)

    @extend_schema(
        operation_id="rotateConnection",
        summary="Take a new key for a connection",
        description="It counts once the peer has agreed; until then messages to either key are "
        "taken. 409 `rotation_unknown` where the peer has not said that it speaks did-rotate.",
        request=None,
        responses=ProtocolContract,
        examples=[SPOKEN],
    )
    def rotate(self, request, connectionId):
        self.perform(one(self.wallet, connectionId).rotate)
        return self.retrieve(request, connectionId)

    @extend_schema(
        operation_id="endConnection",
        summary="End a connection and keep its record",
        description="What is open on it is declined and the peer is told. The state stays "
        "Connected with `endedAtUtc`; nothing more is sent or taken (409 `connection_gone`).",
        request=None,
        responses=ProtocolContract,
        examples=[SPOKEN],
    )
    def end(self, request, connectionId):
        self.perform(one(self.wallet, connectionId).end)
        return self.retrieve(request, connectionId)
