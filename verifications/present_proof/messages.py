"""The messages of present-proof 1.0 and 2.0 (RFCs 0037, 0454)."""

from typing import Any

from agency.core.errors import PeerError
from connections.didcomm import formats
from connections.didcomm.formats import Wire, enclose, enclosed
from connections.didcomm.message import Message, build
from connections.didcomm.service import read_service
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import read_items
from wallets import anoncreds

PRESENT_PROOF = "present-proof"
ABANDONED = "abandoned"
NOT_VALID = "proof-not-valid"


def proposal(preview: dict, policy: dict, wire: Wire) -> dict:
    """In 1.0 with the preview, in 2.0 with a request that the verifier may send back."""
    message = _build("propose-presentation", wire, comment=policy["name"])
    if wire.version == "1.0":
        kind = wire.prefix + wire.type(PRESENT_PROOF, "presentation-preview")
        return message | {"presentation_proposal": {"@type": kind} | preview}
    proof_request = build_request(policy, anoncreds.generate_nonce())
    return message | enclose(wire, formats.PROOF_PROPOSAL, proof_request)


def request(proof_request: dict, wire: Wire, thread_id: str | None = None) -> dict:
    """thread_id: that of the proposal which it answers."""
    message = _build("request-presentation", wire, thread_id, comment="")
    if wire.version != "1.0":
        message["will_confirm"] = True
    return message | enclose(wire, formats.PROOF_REQUEST, proof_request)


def check_shared(message: Message) -> None:
    """PeerError unless this is a request that can be answered without a connection."""
    protocol, _, name = message.family.split("/")
    if (protocol, name) != (PRESENT_PROOF, "request-presentation"):
        raise PeerError("bad_request", f"{message.type} is not a proof request")
    read_service(message)
    read_items(enclosed(message, formats.PROOF_REQUEST))


def presentation(presentation: dict, thread_id: str, wire: Wire) -> dict:
    message = _build("presentation", wire, thread_id, comment="")
    return message | enclose(wire, formats.PRESENTATION, presentation)


def ack(thread_id: str, wire: Wire) -> dict:
    """For a valid proof; one that is not valid gets a problem report.

    verification_result is a member of ACA-Py, see `is_found_valid`.
    """
    return _build("ack", wire, thread_id, status="OK", verification_result="true")


def is_found_valid(ack: Message) -> bool:
    """Whether a verifier's ack says that the proof is valid.

    ACA-Py also acknowledges a proof that it found invalid, and says so in
    `verification_result`: the text "true" or "false" (acapy_agent 1.7.0,
    present_proof/v2_0/messages/pres_ack.py). The RFCs do not have that member: without
    it, the ack means a valid proof.
    """
    result = ack.body.get("verification_result")
    return result is None or str(result).lower() == "true"


def problem(code: str, explanation: str, thread_id: str, wire: Wire) -> dict:
    description = {"code": code, "en": explanation}
    return _build("problem-report", wire, thread_id, description=description)


def _build(name: str, wire: Wire, thread_id: str | None = None, **members: Any) -> dict:
    return build(wire.type(PRESENT_PROOF, name), wire.prefix, thread_id, **members)
