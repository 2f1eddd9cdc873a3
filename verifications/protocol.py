"""present-proof/1.0 (RFC 0037) on the wire."""

from connections.didcomm.message import attach, build

REQUEST = "present-proof/1.0/request-presentation"
PRESENTATION = "present-proof/1.0/presentation"
ACK = "present-proof/1.0/ack"
PROBLEM = "present-proof/1.0/problem-report"
ABANDONED = "abandoned"
NOT_VALID = "proof-not-valid"


def request(request: dict, prefix: str) -> dict:
    attachments = [attach("libindy-request-presentation-0", request)]
    message = build(REQUEST, prefix, comment="")
    return message | {"request_presentations~attach": attachments}


def presentation(presentation: dict, thread_id: str, prefix: str) -> dict:
    attachments = [attach("libindy-presentation-0", presentation)]
    message = build(PRESENTATION, prefix, thread_id, comment="")
    return message | {"presentations~attach": attachments}


def ack(thread_id: str, prefix: str) -> dict:
    return build(ACK, prefix, thread_id, status="OK")


def problem(code: str, explanation: str, thread_id: str, prefix: str) -> dict:
    description = {"code": code, "en": explanation}
    return build(PROBLEM, prefix, thread_id, description=description)
