"""The messages of present-proof 1.0 and 2.0 (RFCs 0037, 0454)."""

from typing import Any

from connections.didcomm import formats
from connections.didcomm.formats import MessageFormat, attach_as, attachment_of
from connections.didcomm.message import Body, Message, build
from connections.didcomm.service import read_service
from core.errors import PeerError
from core.text.bounded_json import JSON
from verifications.previews import Preview
from verifications.proofs import request_building
from verifications.proofs.policy import Policy
from verifications.proofs.request_reading import ProofRequest
from wallets import anoncreds

PRESENT_PROOF = "present-proof"
ABANDONED = "abandoned"
NOT_VALID = "proof-not-valid"


def build_proposal(
    preview: Preview, policy: Policy, message_format: MessageFormat
) -> Body:
    """Build a proposal, with a preview in 1.0 and a proof request in 2.0.

    The verifier may send the request of 2.0 back as it is. So it has a nonce.

    preview: of build_preview(). policy: with its attributes resolved.
    """
    members: dict[str, Any] = {"comment": policy.name}
    if message_format.is_first:
        kind = message_format.prefix + message_format.type(
            PRESENT_PROOF, "presentation-preview"
        )
        members["presentation_proposal"] = {"@type": kind, **preview}
    message = _build_message("propose-presentation", message_format, None, **members)
    if message_format.is_first:
        return message
    proof_request = request_building.build_request(policy, anoncreds.generate_nonce())
    return message | attach_as(message_format, formats.PROOF_PROPOSAL, proof_request)


def build_request(
    proof_request: dict[str, JSON],
    message_format: MessageFormat,
    thread_id: str | None = None,
) -> Body:
    """Build a request. thread_id: the thread of the proposal that it answers."""
    message = _build_message(
        "request-presentation", message_format, thread_id, comment=""
    )
    if not message_format.is_first:
        message["will_confirm"] = True
    return message | attach_as(message_format, formats.PROOF_REQUEST, proof_request)


def check_shared_request(message: Message) -> None:
    """Raise PeerError unless the request can be answered without a connection."""
    protocol, _, name = message.major_type.split("/")
    if (protocol, name) != (PRESENT_PROOF, "request-presentation"):
        raise PeerError("bad_request", f"{message.type} is not a proof request")
    read_service(message)
    ProofRequest.parse(attachment_of(message, formats.PROOF_REQUEST))


def build_presentation(
    presentation: dict[str, JSON], thread_id: str, message_format: MessageFormat
) -> Body:
    message = _build_message("presentation", message_format, thread_id, comment="")
    return message | attach_as(message_format, formats.PRESENTATION, presentation)


def build_ack(
    thread_id: str, message_format: MessageFormat, is_valid: bool = True
) -> Body:
    """Build the ack of a presentation, with the verdict as ACA-Py writes it.

    `verification_result` is an extension of ACA-Py, see `is_found_valid`.
    """
    return _build_message(
        "ack",
        message_format,
        thread_id,
        status="OK",
        verification_result="true" if is_valid else "false",
    )


def is_found_valid(ack: Message) -> bool:
    """Whether a verifier's ack says that the proof is valid.

    ACA-Py sends an ack for an invalid proof too, with the result in
    `verification_result`: the text "true" or "false" (acapy_agent 1.7.0,
    present_proof/v2_0/messages/pres_ack.py). The RFCs do not define that member.
    Without it, the ack means a valid proof.
    """
    result = ack.body.get("verification_result")
    return result is None or str(result).lower() == "true"


def build_problem_report(
    code: str, explanation: str, thread_id: str, message_format: MessageFormat
) -> Body:
    description = {"code": code, "en": explanation}
    return _build_message(
        "problem-report", message_format, thread_id, description=description
    )


def _build_message(
    name: str,
    message_format: MessageFormat,
    thread_id: str | None = None,
    **members: Any,
) -> Body:
    return build(
        message_format.type(PRESENT_PROOF, name),
        message_format.prefix,
        thread_id,
        **members,
    )
