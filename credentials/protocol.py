"""issue-credential/1.0 (RFC 0036) on the wire."""

from agency.errors import PeerError
from connections.didcomm.message import Message, attach, attached, build, text
from connections.protocol import read_service

OFFER = "issue-credential/1.0/offer-credential"
REQUEST = "issue-credential/1.0/request-credential"
ISSUE = "issue-credential/1.0/issue-credential"
ACK = "issue-credential/1.0/ack"
PROBLEM = "issue-credential/1.0/problem-report"
REVOKE = "revocation_notification/1.0/revoke"
PREVIEW = "issue-credential/1.0/credential-preview"
ABANDONED = "issuance-abandoned"


def offer(offer: dict, names: list[str], values: dict[str, str], prefix: str) -> dict:
    """Without a value a name is previewed as an empty text."""
    attributes = [{"name": name, "value": values.get(name, "")} for name in names]
    preview = {"@type": prefix + PREVIEW, "attributes": attributes}
    attachments = [attach("libindy-cred-offer-0", offer)]
    message = build(OFFER, prefix, comment="", credential_preview=preview)
    return message | {"offers~attach": attachments}


def request(request: dict, thread_id: str, prefix: str) -> dict:
    attachments = [attach("libindy-cred-request-0", request)]
    return build(REQUEST, prefix, thread_id, comment="") | {"requests~attach": attachments}


def issue(credential: dict, thread_id: str, prefix: str) -> dict:
    attachments = [attach("libindy-cred-0", credential)]
    return build(ISSUE, prefix, thread_id, comment="") | {"credentials~attach": attachments}


def ack(thread_id: str, prefix: str) -> dict:
    return build(ACK, prefix, thread_id, status="OK")


def abandon(thread_id: str, prefix: str) -> dict:
    description = {"code": ABANDONED, "en": "The credential is not wanted."}
    return build(PROBLEM, prefix, thread_id, description=description)


def revocation(registry_id: str, index: int, prefix: str) -> dict:
    """Revocation notification 1.0 (RFC 0183), naming the credential by its place."""
    return build(REVOKE, prefix, thread_id=f"indy::{registry_id}::{index}", comment="")


def read_revocation(message: Message) -> tuple[str, int]:
    """Registry and index of `indy::<registry id>::<index>`."""
    parts = text(message.body, "thread_id").split("::")
    if len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 9:
        raise PeerError("message_parse_failure", "thread_id names no credential")
    return parts[1], int(parts[2])


def check_shared(message: Message) -> None:
    """PeerError unless this is an offer that can be taken without a connection."""
    if message.family != "issue-credential/1/offer-credential":
        raise PeerError("bad_offer", f"{message.type} is not a credential offer")
    read_service(message)
    read_preview(message)
    attached(message, "offers~attach")


def read_preview(message: Message) -> dict[str, str]:
    """The previewed values by name."""
    preview = message.body.get("credential_preview")
    attributes = preview.get("attributes") if isinstance(preview, dict) else None
    if not isinstance(attributes, list) or not 1 <= len(attributes) <= 125:
        raise PeerError("bad_preview", "credential_preview has no attributes")
    values = {}
    for attribute in attributes:
        name = attribute.get("name") if isinstance(attribute, dict) else None
        value = attribute.get("value", "") if isinstance(attribute, dict) else None
        if not isinstance(name, str) or not isinstance(value, str):
            raise PeerError("bad_preview", "a previewed attribute is not a name with a text")
        values[name] = value
    return values
