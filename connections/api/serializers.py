"""Serializers of connections and messages."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers

from connections import invitation_links
from connections.didcomm.message import MAX_REASON, encode_url
from connections.didcomm.reasons import DECLINES
from connections.models import BasicMessage, Connection
from connections.protocols import out_of_band
from connections.protocols.basic_message import (
    MAX_CONTENT,
    DeliveryState,
    read_states,
)
from core.api import dialects
from core.api.notes import (
    BY_REFERENCE,
    NotesContract,
    NotesParameters,
    NotesQuery,
)
from core.api.pagination import (
    BY_CREATION,
    BY_NAME,
    BY_UPDATE,
    ChangingQuery,
    ListQuery,
    NamedQuery,
)
from core.api.serializers import (
    METADATA,
    Contract,
    IdentifierField,
    Parameters,
    drop_nulls,
)
from tenants import branding
from tenants.models import Tenant

STATES = [(str(state), str(state)) for state in Connection.State]
ROLES = [(str(role), str(role)) for role in Connection.Role]
FORMATS = [(str(one), str(one)) for one in Connection.Format]
VERSIONS = [(str(version), str(version)) for version in Connection.Version]
CONNECTIONS, OUT_OF_BAND, BOTH = (str(one) for one in Tenant.InvitationProtocol)
LINK_PROTOCOLS = [OUT_OF_BAND, CONNECTIONS]
# Of links for wallets of OpenID4VC.
OPENID4VCI, OPENID4VP = "openid4vci", "openid4vp"
NOT_OF_OPENID = (
    "handshakes", "goalCode", "goal", "reuse", "usePublicDid", "exchangeVersion",
    "attachmentFormat",
)  # fmt: skip
PROTOCOLS = ["connections", OUT_OF_BAND, CONNECTIONS, BOTH]
DELIVERY_STATES = [(str(state), str(state)) for state in DeliveryState]
DIRECTIONS = [(str(way), str(way)) for way in BasicMessage.Direction]

BY_DEFAULT = (
    "Without it as the organization chose (`invitationProtocol`); for original clients "
    "`connections/1.0`."
)
ATTACHMENT_FORMAT = (
    "the attachments of issue-credential and present-proof, in version 2.0, which it "
    "implies. Without it what the peer used last, else `hlindy`."
)
CONFIRM_CONNECTIONS = (
    "Whether each request by this invitation waits, as Negotiating, until it is "
    "accepted with PUT or refused with DELETE."
)
THREAD_ID = "The id of its messages' thread, the same on both sides."
PROBLEM = "Of one that was rejected: the code of what ended it."
PROBLEM_MESSAGE = "What `problem` means, in words. Never a text of the other side."
REASON = "Of one that was rejected: why, in the words of the side that ended it."

# What exchanges show of their connection: columns that their lists read.
LINK_COLUMNS = tuple(
    f"connection__{name}"
    for name in (
        "connection_id",
        "deleted_at",
        "connectionless",
        "link_has_both",
        "carries_exchange",
        "token",
        "invitation",
        "shared",
        "role",
        "tenant",
    )
)


def link_protocol(tenant: Tenant) -> str:
    """The protocol of links of offers and requests that the organization chose."""
    return OUT_OF_BAND if tenant.invites_out_of_band else CONNECTIONS


class LinkParameters(Parameters):
    """How an invitation, offer or request is written for a link. All of it may be left out."""

    aliases = {
        "goal_code": "goalCode",
        "return_url": "returnUrl",
        "expires_at": "expiresAt",
        "use_public_did": "usePublicDid",
    }
    # The members that each protocol has not.
    unknown_to = {
        CONNECTIONS: ("handshakes", "goalCode", "goal", "reuse"),
        BOTH: ("handshakes", "reuse"),
        OUT_OF_BAND: (),
        OPENID4VCI: NOT_OF_OPENID,
        OPENID4VP: NOT_OF_OPENID,
    }

    protocol = serializers.ChoiceField(
        LINK_PROTOCOLS,
        required=False,
        help_text="`out-of-band`: as an out-of-band invitation. `connections/1.0`: the "
        "message itself, with `~service`. " + BY_DEFAULT,
    )
    handshakes = serializers.ListField(
        child=serializers.ChoiceField(out_of_band.HANDSHAKE_VERSIONS),
        required=False,
        min_length=1,
        max_length=3,
        help_text="Out-of-band only: the protocols to connect by, the best first. An "
        "offer or request without them is answered without a connection.",
    )
    goalCode = serializers.CharField(
        required=False,
        max_length=100,
        help_text="Out-of-band only: what it is for, by a code.",
    )
    goal = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Out-of-band only: what it is for, for people.",
    )
    reuse = serializers.BooleanField(
        required=False,
        help_text="Out-of-band only: under a key that stays, so that an agent that is "
        "connected already goes on there.",
    )
    usePublicDid = serializers.BooleanField(
        required=False,
        help_text="Name the organization by its public DID, whose endpoint must be "
        "published. An agent that is connected by it already goes on there.",
    )
    returnUrl = serializers.CharField(
        required=False,
        max_length=branding.MAX_URL,
        help_text="Where the page of the link leads back to, once it is done: below "
        "one of the organization's `returnUrls`. Put no values of credentials in it.",
    )
    expiresAt = serializers.DateTimeField(
        required=False,
        help_text="When the link ends: nobody can accept what is in it any more. "
        "Without it the link has no such time.",
    )

    def validate_expiresAt(self, value: datetime) -> datetime:
        if value <= timezone.now():
            raise serializers.ValidationError("Give a time in the future.")
        return value

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        protocol = data.get("protocol") or self.default_protocol(data)
        unknown = self.unknown_to.get(protocol, self.unknown_to[CONNECTIONS])
        if given := [name for name in unknown if data.get(name)]:
            is_openid = protocol in (OPENID4VCI, OPENID4VP)
            message = f"This needs the protocol {OUT_OF_BAND}."
            if is_openid:
                message = f"The protocol {protocol} has no such thing."
            raise serializers.ValidationError({name: [message] for name in given})
        return data | {"protocol": protocol}

    def default_protocol(self, data: Mapping[str, object]) -> str:
        """What the organization chose; for an original client what that reads."""
        if self.is_original or "connectionId" in data:
            return CONNECTIONS
        return link_protocol(self.tenant)

    @property
    def is_original(self) -> bool:
        request = self.context.get("request")
        return request is not None and dialects.is_original(request)

    @property
    def tenant(self) -> Tenant:
        return self.context["request"].user.tenant


class ExchangeLinkParameters(LinkParameters):
    """What a link to an offer or request takes."""

    aliases = LinkParameters.aliases | {
        "exchange_version": "exchangeVersion",
        "attachment_format": "attachmentFormat",
    }

    exchangeVersion = serializers.ChoiceField(
        VERSIONS,
        required=False,
        help_text="By link only: the version of issue-credential or present-proof. "
        "Without it 1.0, and 2.0 in an out-of-band invitation.",
    )
    attachmentFormat = serializers.ChoiceField(
        FORMATS, required=False, help_text=f"By link only: {ATTACHMENT_FORMAT}"
    )

    only_by_link = (
        "protocol", "returnUrl", "expiresAt", "exchangeVersion", "attachmentFormat",
    )  # fmt: skip

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        checked = super().validate(data)
        for name in ("reuse", "usePublicDid"):
            if data.get(name) and "handshakes" not in data:
                raise serializers.ValidationError({name: ["This needs handshakes."]})
        for name in self.only_by_link:
            if name in data and "connectionId" in data:
                raise serializers.ValidationError(
                    {name: ["A connection takes no link."]}
                )
        return checked


def out_of_band_options(
    body: Mapping[str, Any], handshakes: Iterable[str] = ()
) -> out_of_band.OutOfBandOptions | None:
    """Return the terms of an out-of-band invitation in valid LinkParameters, or None.

    None for a protocol without one. handshakes: unless the body has some.
    """
    if body.get("protocol") not in (OUT_OF_BAND, BOTH):
        return None
    return out_of_band.OutOfBandOptions(
        tuple(dict.fromkeys(body.get("handshakes", handshakes))),
        body.get("goalCode", ""),
        body.get("goal", ""),
        body.get("reuse", False),
        body.get("usePublicDid", False),
        is_second=body["protocol"] == BOTH,
        link_has_both=body.get("link_has_both", False),
    )


EXCHANGE_VERSION = (
    "The version of this exchange. Without it that of `/protocols` of the connection."
)


def has_attachment(connection: Connection) -> bool:
    """Return whether a whole message is attached to the invitation."""
    attached = "requests~attach" in connection.invitation
    return attached or connection.shared is not None


def was_accepted_here(connection: Connection) -> bool:
    """Return whether there is an invitation that was accepted: not for a public DID."""
    is_invitee = connection.role == Connection.Role.INVITEE
    return is_invitee and "@type" in connection.invitation


class DeclineParameters(Parameters):
    """May be left out."""

    reason = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_REASON,
        help_text="For the other side, in your words, or one of the codes: "
        + ", ".join(f"`{code}`" for code in DECLINES),
    )


class ConnectionInvitationParameters(LinkParameters, NotesParameters):
    aliases = LinkParameters.aliases | {
        "connection_id": "connectionId",
        "multi_party": "multiParty",
        "confirm_connections": "confirmConnections",
        "exchange_version": "exchangeVersion",
        "attachment_format": "attachmentFormat",
    }

    protocol = serializers.ChoiceField(
        PROTOCOLS,
        required=False,
        help_text="`connections` is short for `connections/1.0`. `both`: an invitation "
        "of each kind under one key; the first request has it. " + BY_DEFAULT,
    )
    exchangeVersion = serializers.ChoiceField(
        VERSIONS, required=False, help_text="Of issue-credential and present-proof."
    )
    attachmentFormat = serializers.ChoiceField(
        FORMATS, required=False, help_text=ATTACHMENT_FORMAT
    )
    connectionId = IdentifierField(required=False)
    multiParty = serializers.BooleanField(required=False)
    confirmConnections = serializers.BooleanField(
        required=False, help_text=CONFIRM_CONNECTIONS
    )
    name = serializers.CharField(required=False, max_length=200, allow_blank=True)

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        return super().validate(data) | {"link_has_both": not self.is_original}

    def default_protocol(self, data: Mapping[str, object]) -> str:
        """For an original client the link carries connections/1.0 in any case."""
        chosen = self.tenant.invitation_protocol
        is_one = chosen == CONNECTIONS or not self.is_original
        return chosen if is_one else BOTH


class ConnectionRequestParameters(NotesParameters):
    did = serializers.CharField(
        max_length=2000,
        help_text="The public DID of whom to connect to: did:sov or without a method "
        "on a network that is known here, or did:web.",
    )
    name = serializers.CharField(
        required=False,
        max_length=200,
        allow_blank=True,
        help_text="Of the connection; without it, the name that the other side gives.",
    )
    another = serializers.BooleanField(
        required=False,
        help_text="Whether to make a further connection if there is one by this DID. "
        "Without it, that one is the answer.",
    )
    handshake = serializers.ChoiceField(
        out_of_band.HANDSHAKE_VERSIONS,
        required=False,
        help_text="The protocol to connect by; without it, "
        f"`{out_of_band.HANDSHAKE_VERSIONS[0]}`.",
    )


class AcceptInvitationParameters(Parameters):
    invitation = serializers.CharField(
        max_length=200_000,
        help_text="The invitation as base64, base64url, JSON, or its link.",
    )


class WalletConnectionQuery(ChangingQuery, NamedQuery, NotesQuery):
    sorts = BY_CREATION | BY_UPDATE | BY_NAME | BY_REFERENCE

    role = serializers.ChoiceField(ROLES, required=False)


class ConnectionQuery(WalletConnectionQuery):
    state = serializers.ChoiceField(STATES, required=False)
    multiParty = serializers.BooleanField(source="multi_party", required=False)


class AgentEndpoint(serializers.Serializer):
    did = serializers.CharField(required=False)
    verkey = serializers.CharField(required=False)
    uri = serializers.CharField(required=False)


class ConnectionContract(NotesContract[Connection]):
    columns = (
        "connection_id", "name", "image_url", "token", "expires_at", "my_did", "their_did",
        "their_key", "their_endpoint", "their_former_key", "state", "role",
        "created_at", "updated_at", "left_at", "multi_party", "confirms", "held_response",
        "out_of_band", "link_has_both",
        "connectionless", "invitation", "shared", "reference", "metadata", "tenant",
        "wallet", "my_key__verkey", "invitation_key__verkey",
    )  # fmt: skip

    # An offer may be attached to the invitation.
    value_members = ("invitation", "invitationUrl", METADATA)
    value_kind = "credentials"

    connectionId = serializers.CharField(source="connection_id")
    name = serializers.CharField(required=False)
    imageUrl = serializers.CharField(source="image_url", required=False)
    myDid = serializers.CharField(
        required=False,
        help_text="The DID that the peer knows; a did:peer:4 in its short form.",
    )
    theirDid = serializers.CharField(source="their_did", required=False)
    myKey = serializers.CharField(required=False)
    theirKey = serializers.CharField(
        source="their_proven_key",
        required=False,
        help_text="The last key with which the peer packed a message.",
    )
    state = serializers.ChoiceField(STATES)
    invitation = serializers.CharField(
        required=False, help_text="For deep links and QR codes."
    )
    invitationUrl = serializers.CharField(required=False)
    outOfBandInvitation = serializers.CharField(
        required=False,
        help_text="The second invitation, out-of-band, under the same key.",
    )
    endpoint = AgentEndpoint(required=False)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    endedAtUtc = serializers.DateTimeField(
        source="left_at",
        required=False,
        help_text="When either side ended it: nothing more goes over it.",
    )
    multiParty = serializers.BooleanField(source="multi_party")
    confirmConnections = serializers.BooleanField(
        required=False, help_text=CONFIRM_CONNECTIONS
    )
    awaitsConfirmation = serializers.BooleanField(
        required=False,
        help_text="A request waits: PUT accepts it, DELETE refuses it.",
    )
    expiresAtUtc = serializers.DateTimeField(
        source="expires_at",
        required=False,
        help_text="When the link of the invitation ends.",
    )

    def get_myDid(self, connection: Connection) -> str | None:
        key = connection.my_key
        return connection.my_did or (key.did if key else None)

    def get_myKey(self, connection: Connection) -> str | None:
        return connection.my_key.verkey if connection.my_key else None

    def get_endpoint(self, connection: Connection) -> dict[str, object] | None:
        if not connection.their_key:
            return None
        request = self.context["request"]
        return drop_nulls(
            did=connection.their_did or None,
            verkey=dialects.endpoint_verkey(request, connection.their_proven_key),
            uri=connection.their_endpoint or None,
        )

    def get_confirmConnections(self, connection: Connection) -> bool | None:
        return connection.confirms or None

    def get_awaitsConfirmation(self, connection: Connection) -> bool | None:
        return connection.is_held or None

    # An inviter shows the link that others can open. An invitee shows what it accepted,
    # in a link that carries the whole message, because the inviter may be another
    # agency's.
    def get_invitation(self, connection: Connection) -> str | None:
        if connection.token and connection.out_of_band:
            return encode_url(connection.invitation)
        if connection.token:
            return invitation_links.encoded_message(connection)
        if was_accepted_here(connection):
            return encode_url(connection.accepted_invitation)
        return None

    def get_invitationUrl(self, connection: Connection) -> str | None:
        if connection.token:
            url = connection.invitation_url
            is_second = connection.out_of_band and connection.link_has_both
            if is_second and dialects.is_original(self.context["request"]):
                return f"{url}?c_i={encode_url(connection.invitation)}"
            return url
        if not was_accepted_here(connection):
            return None
        accepted = connection.accepted_invitation
        query = f"{invitation_links.query_name(accepted)}={encode_url(accepted)}"
        return f"{settings.PUBLIC_URL}/?{query}"

    def get_outOfBandInvitation(self, connection: Connection) -> str | None:
        second = connection.out_of_band if connection.token else None
        return encode_url(second) if second else None

    def members_with_values(self, connection: Connection) -> tuple[str, ...]:
        return self.value_members if has_attachment(connection) else (METADATA,)


class BasicMessageParameters(Parameters):
    connectionId = serializers.CharField(max_length=128)
    text = serializers.CharField(max_length=MAX_CONTENT, trim_whitespace=False)


class BasicMessageQuery(ListQuery):
    direction = serializers.ChoiceField(DIRECTIONS, required=False)


class BasicMessageList(serializers.ListSerializer[BasicMessage]):
    """Reads what became of all outgoing messages of a page at once."""

    def to_representation(  # type: ignore[override]
        self, rows: Iterable[BasicMessage]
    ) -> list[dict[str, object]]:
        return super().to_representation(with_delivery_states(rows))


def with_delivery_states(rows: Iterable[BasicMessage]) -> list[BasicMessage]:
    """The texts, each with what became of it, which one query reads."""
    rows = list(rows)
    states = read_states(rows)
    for row in rows:
        row.delivery_state = states.get(row.pk)  # type: ignore[attr-defined]
    return rows


class BasicMessageRecord(Contract[BasicMessage]):
    """A message in a list."""

    value_members = sealed_members = ("text",)
    value_kind = "messages"

    columns = (
        "direction", "text", "sent_at", "created_at", "updated_at", "tenant",
        "connection__connection_id", "connection__their_endpoint",
    )  # fmt: skip

    class Meta:
        list_serializer_class = BasicMessageList

    id = serializers.CharField(source="pk")
    typeName = serializers.CharField()
    connectionId = serializers.CharField(source="connection.connection_id")
    sentTime = serializers.DateTimeField(source="sent_at")
    direction = serializers.ChoiceField(DIRECTIONS)
    text = serializers.CharField()
    deliveryState = serializers.ChoiceField(
        DELIVERY_STATES,
        source="delivery_state",
        required=False,
        help_text="Of an outgoing message, while it is known.",
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")

    def get_typeName(self, message: BasicMessage) -> str:
        return "BasicMessageRecord"


class BasicMessageContract(Contract[BasicMessage]):
    """A message read by its id."""

    value_members = sealed_members = ("text",)
    value_kind = "messages"

    connectionId = serializers.CharField(source="connection.connection_id")
    timestamp = serializers.DateTimeField(source="sent_at")
    text = serializers.CharField()
    direction = serializers.ChoiceField(DIRECTIONS)
