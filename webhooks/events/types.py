"""What can be announced to webhooks, and who is told what unless he asks for more."""

from django.db import models


class Type(models.TextChoices):
    """`message_type` of an event. The first six are the interface's and the original clients'."""

    NEW_CONNECTION = "new_connection"
    CREDENTIAL_REQUEST = "credential_request"
    VERIFICATION = "verification"
    NEW_INBOX_MESSAGE = "new_inbox_message"
    CREDENTIAL_OFFER = "credential_offer"
    VERIFICATION_REQUEST = "verification_request"

    CONNECTION_INVITED = "connection_invited"
    CONNECTION_NEGOTIATING = "connection_negotiating"
    CONNECTION_CONNECTED = "connection_connected"
    CONNECTION_ENDED = "connection_ended"
    CREDENTIAL_PROPOSED = "credential_proposed"
    CREDENTIAL_OFFERED = "credential_offered"
    CREDENTIAL_REQUESTED = "credential_requested"
    CREDENTIAL_ISSUED = "credential_issued"
    CREDENTIAL_REJECTED = "credential_rejected"
    CREDENTIAL_REVOKED = "credential_revoked"
    VERIFICATION_PROPOSED = "verification_proposed"
    VERIFICATION_REQUESTED = "verification_requested"
    VERIFICATION_ACCEPTED = "verification_accepted"
    VERIFICATION_JUDGED = "verification_judged"
    VERIFICATION_REJECTED = "verification_rejected"
    MESSAGE_SENT = "message_sent"
    WEBHOOK_DISABLED = "webhook_disabled"


INTERFACE = [
    Type.NEW_CONNECTION,
    Type.CREDENTIAL_REQUEST,
    Type.VERIFICATION,
    Type.NEW_INBOX_MESSAGE,
]
CLIENTS = [*INTERFACE, Type.CREDENTIAL_OFFER, Type.VERIFICATION_REQUEST]

# Three of the interface's types are told of the organization's own wallet only, two of the clients'
# of hosted wallets only. The same step in a wallet of the other kind has a name of its own.
IN_HOSTED_WALLETS = {
    Type.NEW_CONNECTION: Type.CONNECTION_CONNECTED,
    Type.CREDENTIAL_REQUEST: Type.CREDENTIAL_REQUESTED,
    Type.VERIFICATION: Type.VERIFICATION_ACCEPTED,
}
IN_OWN_WALLET = {
    Type.CREDENTIAL_OFFER: Type.CREDENTIAL_OFFERED,
    Type.VERIFICATION_REQUEST: Type.VERIFICATION_REQUESTED,
}


def named(kind: Type, in_own_wallet: bool) -> Type:
    """The type of a step that happened in a wallet of this kind."""
    return (IN_OWN_WALLET if in_own_wallet else IN_HOSTED_WALLETS).get(kind, kind)


def object_type(kind: Type) -> str:
    """What the events of a type are about."""
    words = ("connection", "credential", "verification", "message", "webhook")
    return next(word for word in words if word in kind)
