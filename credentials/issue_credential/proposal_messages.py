"""Messages of propose-credential (RFCs 0036, 0453), by which a holder proposes.

In version 1.0 the members of the filter are members of the message itself.
"""

from collections.abc import Mapping
from typing import cast

from connections.didcomm.formats import (
    ANONCREDS,
    FILTER,
    MessageFormat,
    attach_as,
    attachment_of,
    format_of,
)
from connections.didcomm.message import Message, build
from core.errors import PeerError
from core.text.bounded_json import JSON
from credentials.ledgers.base import split_schema_id
from credentials.messages import (
    ISSUE_CREDENTIAL,
    MAX_ATTRIBUTES,
    MAX_OBJECT_ID,
    FilterName,
    Proposal,
    build_preview,
    read_attributes,
)
from wallets.anoncreds import normalise_name
from wallets.anoncreds.objects import OfferBody

# The members of the filter, by their names in the API.
FILTER_MEMBERS: dict[FilterName, str] = {
    "definitionId": "cred_def_id",
    "schemaId": "schema_id",
    "schemaName": "schema_name",
    "schemaVersion": "schema_version",
    "schemaIssuerDid": "schema_issuer_did",
    "issuerDid": "issuer_did",
}
# The members that have another name in the AnonCreds format.
ANONCREDS_FILTER_MEMBERS: dict[FilterName, str] = {
    "schemaIssuerDid": "schema_issuer_id",
    "issuerDid": "issuer_id",
}
MAX_COMMENT = 1000
MAX_NAME = 256
MAX_CHARACTERS = 200_000  # of all names and values


def build_proposal(
    proposed: Proposal,
    message_format: MessageFormat,
    thread_id: str | None = None,
) -> dict[str, JSON]:
    """Build the message of a proposal. thread_id: of the offer that it answers.

    The members of the filter are in the message itself in version 1.0, and attached to
    it in 2.0.
    """
    kind = message_format.type(ISSUE_CREDENTIAL, "propose-credential")
    body = build(
        kind, message_format.prefix, thread_id, comment=proposed.get("comment", "")
    )
    names = FILTER_MEMBERS
    if not message_format.is_first and message_format.format == ANONCREDS:
        names = FILTER_MEMBERS | ANONCREDS_FILTER_MEMBERS
    members = {
        member: proposed[name] for name, member in names.items() if name in proposed
    }
    values = proposed.get("credentialValues")
    preview = {}
    if message_format.is_first:
        if values:
            preview["credential_proposal"] = build_preview(values, message_format)
        return body | members | preview
    if values:
        preview["credential_preview"] = build_preview(values, message_format)
    return body | attach_as(message_format, FILTER, members) | preview


def read_proposal(received: Message) -> Proposal:
    """Read the proposal in a received message. PeerError if it cannot be read.

    Members without a text are left out.
    """
    is_first = format_of(received).is_first
    content = received.body if is_first else attachment_of(received, FILTER)
    preview = received.body.get(
        "credential_proposal" if is_first else "credential_preview"
    )
    texts = {"comment": _text_member(received.body, "comment")[:MAX_COMMENT]}
    for name, member in FILTER_MEMBERS.items():
        # In the spelling of either format, whatever the message says it is.
        texts[name] = _text_member(content, member) or _text_member(
            content, ANONCREDS_FILTER_MEMBERS.get(name, member)
        )
        if len(texts[name]) > MAX_OBJECT_ID:
            raise PeerError("bad_proposal", f"{member} is too long")
    values: dict[str, str] = {}
    if preview is not None:
        values = read_attributes(preview)
        if problem := find_problem(values):
            raise PeerError("bad_proposal", problem)
    return drop_empty(texts | {"credentialValues": values})


def drop_empty(members: Mapping[str, object]) -> Proposal:
    """The proposal of these members, which are its own, without empty ones."""
    return cast(Proposal, {name: value for name, value in members.items() if value})


def _text_member(body: Mapping[str, JSON], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str | None):
        raise PeerError("bad_proposal", f"{name} is no text")
    return value or ""


def matches_offer(proposed: Proposal, offer: OfferBody, values: dict[str, str]) -> bool:
    """Whether an AnonCreds offer matches everything that a proposal names.

    values: those that are offered. They may differ from the proposed ones, but each
    proposed attribute is among them. Schema and issuer are read from the unqualified
    ids of the offer.
    """
    wanted = map(normalise_name, proposed.get("credentialValues", {}))
    if not {*wanted} <= {*map(normalise_name, values)}:
        return False
    schema_id, definition_id = offer["schema_id"], offer["cred_def_id"]
    author, name, version = split_schema_id(schema_id)
    offered: dict[FilterName, str] = {
        "definitionId": definition_id,
        "schemaId": schema_id,
        "schemaName": name,
        "schemaVersion": version,
        "schemaIssuerDid": author,
        "issuerDid": definition_id.partition(":")[0],
    }
    named = {name: proposed[name] for name in offered if name in proposed}
    return all(
        str(value).removeprefix("did:sov:") == offered[name]
        for name, value in named.items()
    )


def find_problem(values: dict[str, str]) -> str:
    """The problem with the number or size of proposed values, or ""."""
    if len(values) > MAX_ATTRIBUTES:
        return f"There are more than {MAX_ATTRIBUTES} attributes."
    if any(not 0 < len(name) <= MAX_NAME for name in values):
        return f"A name has 1 to {MAX_NAME} characters."
    if sum(len(name) + len(value) for name, value in values.items()) > MAX_CHARACTERS:
        return f"Names and values have more than {MAX_CHARACTERS} characters together."
    return ""
