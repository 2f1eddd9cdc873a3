"""The event types, and which of them a webhook receives by default."""

from django.db import models


class Type(models.TextChoices):
    """`message_type` of an event.

    The first four are the interface's, the next two the original clients'.
    """

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


# The defaults of webhooks registered in the interface's and in the clients' dialect.
INTERFACE = [
    Type.NEW_CONNECTION,
    Type.CREDENTIAL_REQUEST,
    Type.VERIFICATION,
    Type.NEW_INBOX_MESSAGE,
]
CLIENTS = [*INTERFACE, Type.CREDENTIAL_OFFER, Type.VERIFICATION_REQUEST]

# Three types of the interface are emitted for the organization's own wallet only, two
# types of the clients for hosted wallets only. In the other kind of wallet the same
# step has a type of its own.
IN_HOSTED_WALLETS = {
    Type.NEW_CONNECTION: Type.CONNECTION_CONNECTED,
    Type.CREDENTIAL_REQUEST: Type.CREDENTIAL_REQUESTED,
    Type.VERIFICATION: Type.VERIFICATION_ACCEPTED,
}
IN_OWN_WALLET = {
    Type.CREDENTIAL_OFFER: Type.CREDENTIAL_OFFERED,
    Type.VERIFICATION_REQUEST: Type.VERIFICATION_REQUESTED,
}


def type_in_wallet(event_type: Type, in_own_wallet: bool) -> Type:
    """The type of a step, given the kind of wallet in which it happened."""
    others = IN_OWN_WALLET if in_own_wallet else IN_HOSTED_WALLETS
    return others.get(event_type, event_type)


def object_type_of(event_type: Type) -> str:
    """What events of this type are about: a word in its name, such as `connection`."""
    words = ("connection", "credential", "verification", "message", "webhook")
    return next(word for word in words if word in event_type)
