"""What messages, events, their deliveries and transport errors are in words, for staff."""

from connections.messaging.outbox import THREAD_ENDED
from connections.models import OutboundMessage
from connections.protocols.basic_message import DeliveryState
from webhooks.events.types import Type
from webhooks.models import Delivery

# By protocol and name of the message, for all versions of a protocol.
MESSAGES = {
    "basicmessage/message": "Text message",
    "connections/ack": "Confirmation of the connection",
    "connections/problem-report": "Problem report about the connection",
    "connections/request": "Request to connect",
    "connections/response": "Answer to the request to connect",
    "did-rotate/ack": "Confirmation of the new keys",
    "did-rotate/hangup": "End of the connection",
    "did-rotate/problem-report": "Problem report about the new keys",
    "did-rotate/rotate": "New keys",
    "didexchange/abandon": "The handshake was abandoned",
    "didexchange/complete": "Confirmation of the connection",
    "didexchange/problem-report": "Problem report about the connection",
    "didexchange/reject": "The handshake was rejected",
    "didexchange/request": "Request to connect",
    "didexchange/response": "Answer to the request to connect",
    "discover-features/disclose": "List of supported protocols",
    "discover-features/disclosures": "List of supported protocols",
    "discover-features/queries": "Question for supported protocols",
    "discover-features/query": "Question for supported protocols",
    "issue-credential/ack": "Confirmation of the credential",
    "issue-credential/issue-credential": "Credential",
    "issue-credential/offer-credential": "Offer of a credential",
    "issue-credential/problem-report": "Problem report about the credential",
    "issue-credential/propose-credential": "Proposal of a credential",
    "issue-credential/request-credential": "Request for the offered credential",
    "notification/ack": "Confirmation",
    "notification/problem-report": "Problem report",
    "out-of-band/handshake-reuse": "Request to go on over a known connection",
    "out-of-band/handshake-reuse-accepted": "Going on over a known connection",
    "out-of-band/invitation": "Invitation",
    "out-of-band/problem-report": "Problem report about the invitation",
    "present-proof/ack": "Verdict of the verifier",
    "present-proof/presentation": "Presentation of the proof",
    "present-proof/problem-report": "Problem report about the proof",
    "present-proof/propose-presentation": "Proposal of a proof",
    "present-proof/request-presentation": "Request for a proof",
    "report-problem/problem-report": "Problem report",
    "revocation-notification/ack": "Confirmation of the revocation",
    "revocation-notification/revoke": "Notice that the credential is revoked",
    "trust-ping/ping": "Ping",
    "trust-ping/ping-response": "Answer to a ping",
}
# By the type of an event.
EVENTS: dict[str, str] = {
    Type.NEW_CONNECTION: "Connected",
    Type.CREDENTIAL_REQUEST: "The holder has accepted the offer",
    Type.VERIFICATION: "The holder has answered, and the proof was judged",
    Type.CREDENTIAL_OFFER: "An offer has arrived",
    Type.VERIFICATION_REQUEST: "A request for a proof has arrived",
    Type.CONNECTION_INVITED: "Invited",
    Type.CONNECTION_NEGOTIATING: "The invitation was accepted",
    Type.CONNECTION_CONNECTED: "Connected",
    Type.CONNECTION_ENDED: "The connection was ended",
    Type.CREDENTIAL_PROPOSED: "A credential was proposed",
    Type.CREDENTIAL_OFFERED: "The credential was offered",
    Type.CREDENTIAL_REQUESTED: "The holder has accepted the offer",
    Type.CREDENTIAL_ISSUED: "The credential was issued",
    Type.CREDENTIAL_REJECTED: "It was declined or cancelled",
    Type.CREDENTIAL_REVOKED: "The credential was revoked",
    Type.VERIFICATION_PROPOSED: "A proof was proposed",
    Type.VERIFICATION_REQUESTED: "The proof was requested",
    Type.VERIFICATION_ACCEPTED: "The proof was sent",
    Type.VERIFICATION_JUDGED: "The verdict has arrived",
    Type.VERIFICATION_REJECTED: "It was declined or cancelled",
    Type.NEW_INBOX_MESSAGE: "A text has arrived",
    Type.MESSAGE_SENT: "A text was sent",
    Type.WEBHOOK_DISABLED: "A webhook was disabled, as it failed too long",
    Type.BULK_FINISHED: "All offers of a file are made",
    Type.MAILING_FINISHED: "All mails with links are sent, or none waits",
    Type.DATABASE_RESTORED: "The database went back to an earlier state",
}
Status = OutboundMessage.Status
# The status of a message as a text, and the CSS class of its badge.
SENT: dict[str, tuple[str, str]] = {
    Status.DONE: ("Sent", "good"),
    Status.PENDING: ("Waiting", "soon"),
    Status.EXHAUSTED: ("Given up", "bad"),
}
RECEIVED: dict[str, tuple[str, str]] = {
    Status.DONE: ("Handled", "good"),
    Status.PENDING: ("Not handled yet", "soon"),
    Status.EXHAUSTED: ("Not handled", "bad"),
}
# The badges of texts and of calls of webhooks, whose states the API has in words.
TEXT_BADGES = {
    DeliveryState.WAITING: "soon",
    DeliveryState.DELIVERED: "good",
    DeliveryState.FAILED: "bad",
}
DELIVERY_BADGES: dict[str, str] = {
    Delivery.Status.DONE: "good",
    Delivery.Status.PENDING: "soon",
    Delivery.Status.UNCONFIRMED: "soon",
    Delivery.Status.EXHAUSTED: "bad",
}
# By the code in `last_error` of a message or delivery.
TRANSPORT_ERRORS = {
    "address_refused": "The address is not public, so it is never called.",
    "connection_gone": "The other side has deleted its key.",
    "endpoint_bad_answer": "What answered there is not a web server.",
    "endpoint_gone": "The address answered that it is gone for good (410).",
    "endpoint_refused": "The address answered with an error status.",
    "endpoint_unconfirmed": "It was sent, and no answer came in time.",
    "endpoint_unreachable": "The address could not be reached.",
    "internal_error": "It failed here. The log of the server says why.",
    THREAD_ENDED: "The other side ended the exchange before it was delivered.",
    "not_fetched": "The other agent has no address and did not come to fetch it.",
    "webhook_disabled": "The webhook was switched off before it was called.",
}


def message_in_words(message_type: str) -> str:
    """A message type such as `connections/1.0/request`; an unknown one as it is."""
    protocol, _, name = message_type.replace("_", "-").split("/")
    return MESSAGES.get(f"{protocol}/{name}", message_type)
