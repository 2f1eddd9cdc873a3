"""present-proof/1.0 (RFC 0037) on the wire."""

from agency.errors import PeerError
from connections.didcomm.message import Message, attach, attached, build
from connections.protocol import read_service
from verifications import request as wire

PROPOSAL = "present-proof/1.0/propose-presentation"
PREVIEW = "present-proof/1.0/presentation-preview"
REQUEST = "present-proof/1.0/request-presentation"
PRESENTATION = "present-proof/1.0/presentation"
ACK = "present-proof/1.0/ack"
PROBLEM = "present-proof/1.0/problem-report"
ABANDONED = "abandoned"
NOT_VALID = "proof-not-valid"


def proposal(preview: dict, comment: str, prefix: str) -> dict:
    preview = {"@type": prefix + PREVIEW} | preview
    return build(PROPOSAL, prefix, comment=comment, presentation_proposal=preview)


def request(request: dict, prefix: str, thread_id: str | None = None) -> dict:
    """thread_id: of the proposal that it answers."""
    attachments = [attach("libindy-request-presentation-0", request)]
    message = build(REQUEST, prefix, thread_id, comment="")
    return message | {"request_presentations~attach": attachments}


def check_shared(message: Message) -> None:
    """PeerError unless this is a request that can be answered without a connection."""
    if message.family != "present-proof/1/request-presentation":
        raise PeerError("bad_request", f"{message.type} is not a proof request")
    read_service(message)
    wire.items(attached(message, "request_presentations~attach"))


def presentation(presentation: dict, thread_id: str, prefix: str) -> dict:
    attachments = [attach("libindy-presentation-0", presentation)]
    message = build(PRESENTATION, prefix, thread_id, comment="")
    return message | {"presentations~attach": attachments}


def ack(thread_id: str, prefix: str) -> dict:
    return build(ACK, prefix, thread_id, status="OK")


def problem(code: str, explanation: str, thread_id: str, prefix: str) -> dict:
    description = {"code": code, "en": explanation}
    return build(PROBLEM, prefix, thread_id, description=description)
