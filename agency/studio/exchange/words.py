"""What the exchange page says: states, messages and transport errors in words."""

from typing import Any

from connections.messaging.outbox import THREAD_ENDED
from connections.models import Connection
from credentials.models import Credential
from verifications.models import Verification
from webhooks.events.types import Type

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
}


def message_in_words(message_type: str) -> str:
    """A message type such as `connections/1.0/request`; an unknown one as it is."""
    protocol, _, name = message_type.replace("_", "-").split("/")
    return MESSAGES.get(f"{protocol}/{name}", message_type)


C, D, V = Connection.State, Credential.State, Verification.State
ROLES = {
    "inviter": "This side invited",
    "invitee": "This side accepted an invitation",
    "issuer": "This side issues",
    "holder": "This side holds",
    "verifier": "This side verifies",
    "prover": "This side proves",
}
# What happens next, by kind, role and state.
NEXT_STEPS: dict[tuple[str, str, str], str] = {
    ("connection", "inviter", C.INVITED): (
        "Nobody has accepted the invitation yet. Send its link again if it was lost."
    ),
    ("connection", "inviter", C.NEGOTIATING): (
        "The other side has accepted, and the two agents exchange keys. If this takes "
        "longer than a minute, look at the last message below."
    ),
    ("connection", "inviter", C.CONNECTED): (
        "Both sides can offer credentials, ask for proofs and send messages."
    ),
    ("connection", "invitee", C.INVITED): (
        "The invitation is being answered. If this takes longer than a minute, look "
        "at the last message below."
    ),
    ("connection", "invitee", C.NEGOTIATING): (
        "The inviter has not answered yet. Look at the last message below; if it was "
        "sent, ask the inviter."
    ),
    ("connection", "invitee", C.CONNECTED): (
        "Both sides can offer credentials, ask for proofs and send messages."
    ),
    ("credential", "issuer", D.PROPOSED): (
        "The holder proposes what to issue. Answer with an offer through the API, or "
        "cancel."
    ),
    ("credential", "issuer", D.OFFERED): (
        "The offer is in the wallet of the holder, who has not accepted it yet."
    ),
    ("credential", "issuer", D.REQUESTED): (
        "The holder has accepted. Issue it through the API, unless it is issued "
        "automatically."
    ),
    ("credential", "issuer", D.ISSUED): "The holder has the credential.",
    ("credential", "issuer", D.REJECTED): (
        "It was ended before it was issued. Make a new offer if it is still wanted."
    ),
    ("credential", "issuer", D.REVOKED): (
        "The credential is revoked. Issue a new one if the holder needs one."
    ),
    ("credential", "holder", D.PROPOSED): "The issuer has to answer with an offer.",
    ("credential", "holder", D.OFFERED): (
        "The owner of this wallet has to accept the offer or decline it."
    ),
    ("credential", "holder", D.REQUESTED): "The issuer has to issue it.",
    ("credential", "holder", D.ISSUED): "The credential is in this wallet.",
    ("credential", "holder", D.REJECTED): (
        "It was ended before it was issued. Ask the issuer for a new offer."
    ),
    ("credential", "holder", D.REVOKED): (
        "The issuer has revoked the credential. Ask the issuer for a new one."
    ),
    ("verification", "verifier", V.PROPOSED): (
        "The holder proposes what to show. Answer with a request through the API, or "
        "cancel."
    ),
    ("verification", "verifier", V.REQUESTED): (
        "The request is in the wallet of the holder, who has not answered yet."
    ),
    ("verification", "verifier", V.ACCEPTED): "The holder has answered.",
    ("verification", "verifier", V.REJECTED): (
        "It was ended before a proof came. Ask again if it is still needed."
    ),
    ("verification", "prover", V.PROPOSED): (
        "The verifier has to answer with a request."
    ),
    ("verification", "prover", V.REQUESTED): (
        "The owner of this wallet has to choose credentials or decline."
    ),
    ("verification", "prover", V.ACCEPTED): (
        "The proof was sent. The verifier has not said yet whether it is valid."
    ),
    ("verification", "prover", V.REJECTED): (
        "It was ended before a proof was sent. Ask the verifier for a new request."
    ),
}
# Of what waits behind a link, in the same way.
BY_LINK = {
    ("credential", "issuer", D.OFFERED): "Nobody has accepted it yet.",
    ("verification", "verifier", V.REQUESTED): "Nobody has answered yet.",
}
MULTI_PARTY = (
    "The invitation stays open for everybody who has its link. Each one who accepts "
    "becomes a connection of its own."
)
HELD = (
    "A request to connect waits for an answer. Accept it, or refuse it by deleting the "
    "connection."
)
VALID = "The proof is valid: it shows what was asked for."
NOT_VALID = "The proof is not valid."
PROVER_TOLD = "The verifier has found the proof not valid."
PROVER_VALID = "The verifier has found the proof valid."
PROVER_NOT_VALID = (
    "The verifier has found the proof not valid. Only the verifier knows why."
)


def next_step(row: Any) -> str:
    """What happened last, and what has to happen next."""
    if row.OBJECT_TYPE == "connection":
        return next_step_of_connection(row)
    if row.OBJECT_TYPE == "verification" and row.is_valid is not None:
        if row.role == Verification.Role.VERIFIER:
            return VALID if row.is_valid else NOT_VALID
        if row.is_valid:
            return PROVER_VALID
        return PROVER_TOLD if row.problem else PROVER_NOT_VALID
    place = (row.OBJECT_TYPE, row.role, row.state)
    if place in BY_LINK and row.connection and row.connection.is_open:
        return BY_LINK[place]
    return NEXT_STEPS[place]


def next_step_of_connection(row: Connection) -> str:
    if row.left_at:
        return "One side has ended the connection: nothing more goes over it."
    if row.problem:
        return "The other agent refused the handshake. Make a new invitation."
    if row.multi_party:
        return MULTI_PARTY
    if row.is_held:
        return HELD
    return NEXT_STEPS["connection", row.role, row.state]
