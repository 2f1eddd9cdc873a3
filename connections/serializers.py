"""Shapes of connections in the API."""

from rest_framework import serializers

from agency import dialects
from agency.api import Contract, IdentifierField, Parameters, compact, utc
from agency.listing import CREATED, NAMED, UPDATED, ChangingQuery, ListQuery, NamedQuery
from connections.models import BasicMessage, Connection
from connections.protocol import MAX_CONTENT

STATES = [(str(state), str(state)) for state in Connection.State]
ROLES = [(str(role), str(role)) for role in Connection.Role]
DIRECTIONS = [(str(way), str(way)) for way in BasicMessage.Direction]


class ConnectionInvitationParameters(Parameters):
    aliases = {"connection_id": "connectionId", "multi_party": "multiParty"}

    connectionId = IdentifierField(required=False)
    multiParty = serializers.BooleanField(required=False)
    name = serializers.CharField(required=False, max_length=200, allow_blank=True)


class AcceptInvitationParameters(Parameters):
    invitation = serializers.CharField(
        max_length=20_000, help_text="The invitation as base64, base64url, JSON, or its link."
    )


class WalletConnectionQuery(ChangingQuery, NamedQuery):
    sorts = CREATED | UPDATED | NAMED

    role = serializers.ChoiceField(ROLES, required=False)


class ConnectionQuery(WalletConnectionQuery):
    state = serializers.ChoiceField(STATES, required=False)
    multiParty = serializers.BooleanField(source="multi_party", required=False)


class AgentEndpoint(serializers.Serializer):
    did = serializers.CharField(required=False)
    verkey = serializers.ListField(child=serializers.CharField(), required=False)
    uri = serializers.CharField(required=False)


class ConnectionContract(Contract):
    columns = (
        "connection_id", "name", "image_url", "token", "their_did", "their_key", "their_endpoint",
        "state", "role", "created_at", "multi_party", "connectionless", "invitation", "shared",
        "tenant", "wallet", "my_key__verkey", "invitation_key__verkey",
    )  # fmt: skip

    connectionId = serializers.CharField()
    name = serializers.CharField(required=False)
    imageUrl = serializers.CharField(required=False)
    myDid = serializers.CharField(required=False)
    theirDid = serializers.CharField(required=False)
    myKey = serializers.CharField(required=False)
    theirKey = serializers.CharField(required=False)
    state = serializers.ChoiceField(STATES)
    invitation = serializers.CharField(required=False, help_text="For deep links and QR codes.")
    invitationUrl = serializers.CharField(required=False)
    endpoint = AgentEndpoint(required=False)
    createdAtUtc = serializers.DateTimeField()
    multiParty = serializers.BooleanField()

    def to_representation(self, connection):
        key, inviter = connection.my_key, bool(connection.token)
        return compact(
            connectionId=connection.connection_id,
            name=connection.name or None,
            imageUrl=connection.image_url or None,
            myDid=key and key.did,
            theirDid=connection.their_did or None,
            myKey=key and key.verkey,
            theirKey=connection.their_key or None,
            state=connection.state,
            invitation=connection.invitation_data if inviter else None,
            invitationUrl=connection.invitation_url,
            endpoint=self.their_endpoint(connection),
            createdAtUtc=utc(connection.created_at),
            multiParty=connection.multi_party,
        )

    def their_endpoint(self, connection):
        if not connection.their_key:
            return None
        return compact(
            did=connection.their_did or None,
            verkey=dialects.verkey(self.context["request"], connection.their_key),
            uri=connection.their_endpoint or None,
        )


class BasicMessageParameters(Parameters):
    connectionId = serializers.CharField(max_length=128)
    text = serializers.CharField(max_length=MAX_CONTENT, trim_whitespace=False)


class BasicMessageQuery(ListQuery):
    direction = serializers.ChoiceField(DIRECTIONS, required=False)


class BasicMessageRecord(Contract):
    """A message in a list."""

    columns = (
        "direction", "text", "sent_at", "created_at", "updated_at", "tenant",
        "connection__connection_id",
    )  # fmt: skip

    id = serializers.CharField()
    typeName = serializers.CharField()
    connectionId = serializers.CharField()
    sentTime = serializers.DateTimeField()
    direction = serializers.ChoiceField(DIRECTIONS)
    text = serializers.CharField()
    createdAtUtc = serializers.DateTimeField()
    updatedAtUtc = serializers.DateTimeField()

    def to_representation(self, message):
        return {
            "id": str(message.pk),
            "typeName": "BasicMessageRecord",
            "connectionId": message.connection.connection_id,
            "sentTime": utc(message.sent_at),
            "direction": message.direction,
            "text": message.shown_text(),
            "createdAtUtc": utc(message.created_at),
            "updatedAtUtc": utc(message.updated_at),
        }


class BasicMessageContract(Contract):
    """A message read by its id."""

    connectionId = serializers.CharField()
    timestamp = serializers.DateTimeField()
    text = serializers.CharField()
    direction = serializers.ChoiceField(DIRECTIONS)

    def to_representation(self, message):
        return {
            "connectionId": message.connection.connection_id,
            "timestamp": utc(message.sent_at),
            "text": message.shown_text(),
            "direction": message.direction,
        }
