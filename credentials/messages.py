"""Messages of issue-credential and of revocation notification, in both versions.

RFCs 0036 and 0453, RFCs 0183 and 0721. This module does not use the database.
"""

from typing import Literal, TypedDict, cast

from connections.didcomm import formats
from connections.didcomm.formats import MessageFormat, attach_as, attachment_of
from connections.didcomm.message import Message, build, text
from connections.didcomm.service import read_service
from core.errors import PeerError
from core.text.bounded_json import JSON
from wallets.anoncreds.objects import CredentialBody, OfferBody, Opaque

ISSUE_CREDENTIAL = "issue-credential"
MAX_ATTRIBUTES = 125  # of a credential; the API has the same limit
MAX_OBJECT_ID = 300  # characters of the id of a schema or definition, as in the tables
MAX_REGISTRY_ID = 500  # characters, as in the tables
ABANDONED = "issuance-abandoned"
# ACA-Py reads only this format, whatever the format of the issuance.
REVOCATION_FORMAT = "indy-anoncreds"
# The members of a proposal that its filter has.
FilterName = Literal[
    "definitionId",
    "schemaId",
    "schemaName",
    "schemaVersion",
    "schemaIssuerDid",
    "issuerDid",
]


class Proposal(TypedDict, total=False):
    """What a holder proposes, with the names of the API. The issuer chooses the rest."""

    comment: str
    definitionId: str
    schemaId: str
    schemaName: str
    schemaVersion: str
    schemaIssuerDid: str
    issuerDid: str
    credentialValues: dict[str, str]


def build_offer(
    offer: OfferBody,
    names: list[str],
    values: dict[str, str],
    message_format: MessageFormat,
    thread_id: str | None = None,
) -> dict[str, JSON]:
    """Build an offer. In the preview, attributes without a value have an empty text.

    offer: the AnonCreds offer. thread_id: of the proposal that it answers.
    """
    message = _build_message("offer-credential", message_format, thread_id, comment="")
    message["credential_preview"] = build_preview(
        {name: values.get(name, "") for name in names}, message_format
    )
    return message | attach_as(message_format, formats.OFFER, offer)


def build_preview(
    values: dict[str, str], message_format: MessageFormat
) -> dict[str, JSON]:
    """Build the credential preview of an offer or proposal."""
    kind = message_format.prefix + message_format.type(
        ISSUE_CREDENTIAL, "credential-preview"
    )
    attributes: list[JSON] = [
        {"name": name, "value": value} for name, value in values.items()
    ]
    return {"@type": kind, "attributes": attributes}


def build_request(
    request: Opaque, thread_id: str, message_format: MessageFormat
) -> dict[str, JSON]:
    message = _build_message(
        "request-credential", message_format, thread_id, comment=""
    )
    return message | attach_as(message_format, formats.REQUEST, request)


def build_issue(
    credential: CredentialBody, thread_id: str, message_format: MessageFormat
) -> dict[str, JSON]:
    message = _build_message("issue-credential", message_format, thread_id, comment="")
    return message | attach_as(message_format, formats.CREDENTIAL, credential)


def build_ack(thread_id: str, message_format: MessageFormat) -> dict[str, JSON]:
    return _build_message("ack", message_format, thread_id, status="OK")


def build_problem_report(
    thread_id: str, message_format: MessageFormat, explanation: str
) -> dict[str, JSON]:
    """Build the report of a side that declines."""
    return _build_message(
        "problem-report",
        message_format,
        thread_id,
        description={"code": ABANDONED, "en": explanation},
    )


def _build_message(
    name: str,
    message_format: MessageFormat,
    thread_id: str | None = None,
    **members: JSON,
) -> dict[str, JSON]:
    return build(
        message_format.type(ISSUE_CREDENTIAL, name),
        message_format.prefix,
        thread_id,
        None,
        **members,
    )


def build_revocation(
    registry_id: str, index: int, message_format: MessageFormat
) -> dict[str, JSON]:
    """Build the notification that a credential is revoked.

    Its version is that of the issuance. It names the credential by its slot, as in
    ACA-Py.
    """
    if message_format.is_first:
        members = {"thread_id": f"indy::{registry_id}::{index}", "comment": ""}
    else:
        members = {
            "revocation_format": REVOCATION_FORMAT,
            "credential_id": f"{registry_id}::{index}",
        }
    kind = message_format.type("revocation_notification", "revoke")
    return build(kind, message_format.prefix, **members)


def read_revocation(message: Message) -> tuple[str, int]:
    """The registry id and index of the revoked credential, in either version.

    The member that names the credential is `[indy::]<registry id>::<index>`, as ACA-Py
    writes it. PeerError `message_parse_failure` for any other.
    """
    is_first = formats.format_of(message).is_first
    named = text(message.body, "thread_id" if is_first else "credential_id")
    registry_id, _, index = named.removeprefix("indy::").rpartition("::")
    if not registry_id or not index.isdecimal() or len(index) > 9:
        raise PeerError(
            "message_parse_failure",
            "the notification names no credential",
        )
    return registry_id, int(index)


def check_shared_offer(message: Message) -> None:
    """PeerError unless this is an offer that can be accepted without a connection."""
    protocol, _, name = message.major_type.split("/")
    if (protocol, name) != (ISSUE_CREDENTIAL, "offer-credential"):
        raise PeerError("bad_offer", f"{message.type} is not a credential offer")
    read_service(message)
    read_preview(message)
    read_offer(message)


def read_offer(message: Message) -> OfferBody:
    """The attached AnonCreds offer, with ids of a schema and a definition.

    PeerError `message_parse_failure` or `bad_offer`.
    """
    offer = attachment_of(message, formats.OFFER)
    for name in ("schema_id", "cred_def_id"):
        named = offer.get(name)
        if not isinstance(named, str) or not 0 < len(named) <= MAX_OBJECT_ID:
            raise PeerError("bad_offer", f"{name} of the offer is no id")
    return cast(OfferBody, offer)


def read_preview(message: Message) -> dict[str, str]:
    """The values in the preview of an offer, by attribute name."""
    return read_attributes(message.body.get("credential_preview"))


def read_attributes(preview: JSON) -> dict[str, str]:
    """`{name: value}` of a credential preview.

    PeerError `bad_preview` if it cannot be read, or names an attribute twice.
    """
    attributes = preview.get("attributes") if isinstance(preview, dict) else None
    if not isinstance(attributes, list) or not 1 <= len(attributes) <= MAX_ATTRIBUTES:
        raise PeerError("bad_preview", "the preview has no attributes")
    values = {}
    for attribute in attributes:
        name = attribute.get("name") if isinstance(attribute, dict) else None
        value = attribute.get("value", "") if isinstance(attribute, dict) else None
        if not isinstance(name, str) or not isinstance(value, str):
            raise PeerError(
                "bad_preview", "a previewed attribute is not a name with a text"
            )
        if name in values:
            raise PeerError("bad_preview", "the preview names an attribute twice")
        values[name] = value
    return values
