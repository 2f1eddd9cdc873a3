"""The event types, and the default types of webhooks."""

from django.db import models


class Type(models.TextChoices):
    """The `message_type` of an event.

    The first four are those of the interface, the next two those of the original
    clients.
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
    BULK_FINISHED = "bulk_finished"
    MAILING_FINISHED = "mailing_finished"
    DATABASE_RESTORED = "database_restored"


# The default types of webhooks registered in the dialects of interface and clients.
INTERFACE = [
    Type.NEW_CONNECTION,
    Type.CREDENTIAL_REQUEST,
    Type.VERIFICATION,
    Type.NEW_INBOX_MESSAGE,
]
CLIENTS = [*INTERFACE, Type.CREDENTIAL_OFFER, Type.VERIFICATION_REQUEST]


def object_type_of(event_type: Type) -> str:
    """Return the object type of an event type: a word in its name, as `connection`."""
    words = (
        "connection", "credential", "verification", "message", "webhook", "bulk",
        "mailing", "database",
    )  # fmt: skip
    return next(word for word in words if word in event_type)
