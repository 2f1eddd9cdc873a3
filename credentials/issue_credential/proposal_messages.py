"""What a holder would like to be issued (RFCs 0036, 0453): told, and read.

`{"comment", "definitionId", …, "credentialValues": {name: value}}`, in the API's
words. What is absent is left to the issuer. In 1.0 the filter's members stand in the
message itself.
"""

from typing import Any

from agency.core.errors import PeerError
from connections.didcomm.formats import (
    ANONCREDS,
    FILTER,
    Wire,
    enclose,
    enclosed,
    wire_of,
)
from connections.didcomm.message import Message, build
from credentials.issue_credential.messages import ISSUE_CREDENTIAL, preview, previewed

WORDS = {
    "definitionId": "cred_def_id",
    "schemaId": "schema_id",
    "schemaName": "schema_name",
    "schemaVersion": "schema_version",
    "schemaIssuerDid": "schema_issuer_did",
    "issuerDid": "issuer_did",
}
ANONCREDS_WORDS = {"schemaIssuerDid": "schema_issuer_id", "issuerDid": "issuer_id"}
MAX_ID = 300
MAX_COMMENT = 1000
MAX_NAME = 256
MAX_ATTRIBUTES = 125
MAX_CHARACTERS = 200_000  # of all names and values


def message(
    proposed: dict[str, Any], wire: Wire, thread_id: str | None = None
) -> dict[str, Any]:
    """thread_id: of the offer that it answers."""
    kind = wire.type(ISSUE_CREDENTIAL, "propose-credential")
    body = build(kind, wire.prefix, thread_id, comment=proposed.get("comment", ""))
    is_first, values = wire.version == "1.0", proposed.get("credentialValues")
    body |= (
        _filter(proposed, wire)
        if is_first
        else enclose(wire, FILTER, _filter(proposed, wire))
    )
    if values:
        body["credential_proposal" if is_first else "credential_preview"] = preview(
            values, wire
        )
    return body


def _filter(proposed: dict[str, Any], wire: Wire) -> dict[str, str]:
    is_anoncreds = (wire.version, wire.format) == ("2.0", ANONCREDS)
    words = WORDS | (ANONCREDS_WORDS if is_anoncreds else {})
    return {word: proposed[name] for name, word in words.items() if name in proposed}


def read(received: Message) -> dict[str, Any]:
    """What a holder proposes. PeerError if it cannot be read."""
    is_first = wire_of(received).version == "1.0"
    content = received.body if is_first else enclosed(received, FILTER)
    shown = received.body.get(
        "credential_proposal" if is_first else "credential_preview"
    )
    proposed: dict[str, Any] = {
        "comment": _text(received.body, "comment")[:MAX_COMMENT]
    }
    for name, word in WORDS.items():
        proposed[name] = _text(content, word) or _text(
            content, ANONCREDS_WORDS.get(name, word)
        )
        if len(proposed[name]) > MAX_ID:
            raise PeerError("bad_proposal", f"{word} is too long")
    proposed["credentialValues"] = {} if shown is None else _values(shown)
    return {name: value for name, value in proposed.items() if value}


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str | None):
        raise PeerError("bad_proposal", f"{name} is no text")
    return value or ""


def _values(shown: Any) -> dict[str, str]:
    values = previewed(shown)
    problem = problem_of(values)
    if len(values) != len(shown["attributes"]):
        problem = "A name comes twice."
    if problem:
        raise PeerError("bad_proposal", problem)
    return values


def fits(proposed: dict[str, Any], offer: dict[str, Any]) -> bool:
    """Whether an AnonCreds offer is of what a proposal names; its unqualified ids
    tell."""
    schema_id, definition_id = (
        str(offer.get("schema_id")),
        str(offer.get("cred_def_id")),
    )
    author, _, name, version = (schema_id.split(":", 3) + [""] * 3)[:4]
    offered = {
        "definitionId": definition_id,
        "schemaId": schema_id,
        "schemaName": name,
        "schemaVersion": version,
        "schemaIssuerDid": author,
        "issuerDid": definition_id.partition(":")[0],
    }
    named = {one: str(text).removeprefix("did:sov:") for one, text in proposed.items()}
    return all(named.get(one, text) == text for one, text in offered.items())


def problem_of(values: dict[str, str]) -> str:
    """Why so many or so large values are not proposed, or nothing."""
    if len(values) > MAX_ATTRIBUTES:
        return f"There are more than {MAX_ATTRIBUTES} attributes."
    if any(not 0 < len(name) <= MAX_NAME for name in values):
        return f"A name has 1 to {MAX_NAME} characters."
    if sum(len(name) + len(value) for name, value in values.items()) > MAX_CHARACTERS:
        return f"Names and values have more than {MAX_CHARACTERS} characters together."
    return ""
