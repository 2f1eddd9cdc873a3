"""issue-credential 1.0 and 2.0 (RFCs 0036, 0453), revocation notification (RFCs 0183,
0721)."""

from typing import Any

from agency.core.errors import PeerError
from connections.didcomm import formats
from connections.didcomm.formats import Wire, enclose, enclosed
from connections.didcomm.message import Message, build, text
from connections.didcomm.service import read_service

ISSUE_CREDENTIAL = "issue-credential"
ABANDONED = "issuance-abandoned"
REVOCATION_FORMAT = "indy-anoncreds"  # ACA-Py reads no other, whatever it was issued in


def offer(
    offer: dict,
    names: list[str],
    values: dict[str, str],
    wire: Wire,
    thread_id: str | None = None,
) -> dict:
    """Without a value a name is previewed as an empty text. thread_id: of what it
    answers."""
    message = _build("offer-credential", wire, thread_id, comment="")
    message["credential_preview"] = preview(
        {name: values.get(name, "") for name in names}, wire
    )
    return message | enclose(wire, formats.OFFER, offer)


def preview(values: dict[str, str], wire: Wire) -> dict:
    kind = wire.prefix + wire.type(ISSUE_CREDENTIAL, "credential-preview")
    attributes = [{"name": name, "value": value} for name, value in values.items()]
    return {"@type": kind, "attributes": attributes}


def request(request: dict, thread_id: str, wire: Wire) -> dict:
    message = _build("request-credential", wire, thread_id, comment="")
    return message | enclose(wire, formats.REQUEST, request)


def issue(credential: dict, thread_id: str, wire: Wire) -> dict:
    message = _build("issue-credential", wire, thread_id, comment="")
    return message | enclose(wire, formats.CREDENTIAL, credential)


def ack(thread_id: str, wire: Wire) -> dict:
    return _build("ack", wire, thread_id, status="OK")


def abandon(thread_id: str, wire: Wire) -> dict:
    description = {"code": ABANDONED, "en": "The credential is not wanted."}
    return _build("problem-report", wire, thread_id, description=description)


def _build(name: str, wire: Wire, thread_id: str | None = None, **members: Any) -> dict:
    return build(wire.type(ISSUE_CREDENTIAL, name), wire.prefix, thread_id, **members)


def revocation(registry_id: str, index: int, wire: Wire) -> dict:
    """Names the credential by its place, in the version of its issuance."""
    if wire.version == "1.0":
        thread_id = f"indy::{registry_id}::{index}"
        return _revoke(wire, thread_id=thread_id, comment="")
    place = f"{registry_id}::{index}"
    return _revoke(wire, revocation_format=REVOCATION_FORMAT, credential_id=place)


def _revoke(wire: Wire, **members: str) -> dict:
    return build(wire.type("revocation_notification", "revoke"), wire.prefix, **members)


def read_revocation(message: Message) -> tuple[str, int]:
    """Registry and index of `[indy::]<registry id>::<index>`, in either version's
    member."""
    is_first = message.type.split("/")[1].startswith("1.")
    place = text(message.body, "thread_id" if is_first else "credential_id")
    registry_id, _, index = place.removeprefix("indy::").rpartition("::")
    if not registry_id or not index.isdecimal() or len(index) > 9:
        raise PeerError("message_parse_failure", "the notification names no credential")
    return registry_id, int(index)


def check_shared(message: Message) -> None:
    """PeerError unless this is an offer that can be taken without a connection."""
    protocol, _, name = message.family.split("/")
    if (protocol, name) != (ISSUE_CREDENTIAL, "offer-credential"):
        raise PeerError("bad_offer", f"{message.type} is not a credential offer")
    read_service(message)
    read_preview(message)
    enclosed(message, formats.OFFER)


def read_preview(message: Message) -> dict[str, str]:
    """The previewed values of an offer by name."""
    return previewed(message.body.get("credential_preview"))


def previewed(preview: Any) -> dict[str, str]:
    attributes = preview.get("attributes") if isinstance(preview, dict) else None
    if not isinstance(attributes, list) or not 1 <= len(attributes) <= 125:
        raise PeerError("bad_preview", "the preview has no attributes")
    values = {}
    for attribute in attributes:
        name = attribute.get("name") if isinstance(attribute, dict) else None
        value = attribute.get("value", "") if isinstance(attribute, dict) else None
        if not isinstance(name, str) or not isinstance(value, str):
            raise PeerError(
                "bad_preview", "a previewed attribute is not a name with a text"
            )
        values[name] = value
    return values
