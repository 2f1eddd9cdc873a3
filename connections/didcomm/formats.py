"""Versions and attachment formats of issue-credential and present-proof.

Version 1.0 identifies an attachment by its member and id (RFCs 0036 and 0037), version
2.0 by its format (RFCs 0453 and 0454). The attached content is the same in both.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from connections.didcomm.message import Message, json_attachment, read_attachment
from core.errors import PeerError
from core.text.bounded_json import JSON

HLINDY, ANONCREDS = "hlindy", "anoncreds"
OTHER_FORMAT = {HLINDY: ANONCREDS, ANONCREDS: HLINDY}
VERSIONS = ("1.0", "2.0")
PROTOCOLS = ("issue-credential", "present-proof")


class MessageFormat(NamedTuple):
    """How messages of an exchange are written. `format` is used in 2.0 only."""

    prefix: str
    version: str = "1.0"
    format: str = HLINDY

    @property
    def is_first(self) -> bool:
        """Whether the version is 1.0."""
        return self.version == "1.0"

    def type(self, protocol: str, name: str) -> str:
        """Return the type of a message without its prefix, in this version."""
        return f"{protocol}/{self.version}/{name}"

    def in_version(self, version: str) -> "MessageFormat":
        """Return this format with another version; `version` empty: itself."""
        return self._replace(version=version or self.version)


class Attachment(NamedTuple):
    """How one kind of content is attached to a message.

    member: of the message. identifier: the attachment id, by which 1.0 finds it.
    formats: the format names of 2.0. others: formats that are read but never written.
    """

    member: str
    identifier: str
    formats: dict[str, str]
    others: tuple[str, ...] = ()


FILTER = Attachment(
    "filters~attach",
    "libindy-cred-filter-0",
    {HLINDY: "hlindy/cred-filter@v2.0", ANONCREDS: "anoncreds/credential-filter@v1.0"},
)
OFFER = Attachment(
    "offers~attach",
    "libindy-cred-offer-0",
    {
        HLINDY: "hlindy/cred-abstract@v2.0",
        ANONCREDS: "anoncreds/credential-offer@v1.0",
    },
)
REQUEST = Attachment(
    "requests~attach",
    "libindy-cred-request-0",
    {HLINDY: "hlindy/cred-req@v2.0", ANONCREDS: "anoncreds/credential-request@v1.0"},
)
CREDENTIAL = Attachment(
    "credentials~attach",
    "libindy-cred-0",
    {HLINDY: "hlindy/cred@v2.0", ANONCREDS: "anoncreds/credential@v1.0"},
)
PROOF_PROPOSAL = Attachment(
    "proposals~attach",
    "libindy-proof-proposal-0",
    {HLINDY: "hlindy/proof-req@v2.0", ANONCREDS: "anoncreds/proof-request@v1.0"},
    ("anoncreds/proof-proposal@v1.0",),  # ACA-Py 1.7.0; RFC 0771 defines none
)
PROOF_REQUEST = Attachment(
    "request_presentations~attach",
    "libindy-request-presentation-0",
    {HLINDY: "hlindy/proof-req@v2.0", ANONCREDS: "anoncreds/proof-request@v1.0"},
)
PRESENTATION = Attachment(
    "presentations~attach",
    "libindy-presentation-0",
    {HLINDY: "hlindy/proof@v2.0", ANONCREDS: "anoncreds/proof@v1.0"},
)


def attach_as(
    message_format: MessageFormat, attachment: Attachment, content: Mapping[str, Any]
) -> dict[str, JSON]:
    """Return the members of a message that attach `content` in this format."""
    members: dict[str, JSON] = {
        attachment.member: [json_attachment(attachment.identifier, content)]
    }
    if not message_format.is_first:
        members["formats"] = [
            {
                "attach_id": attachment.identifier,
                "format": attachment.formats[message_format.format],
            }
        ]
    return members


def format_of(message: Message) -> MessageFormat:
    """Return the prefix, version and format of a received message, for its answer.

    The version is that of the major version, as in "2.0". A message that lists both
    formats, or none, is taken for hlindy.
    """
    version = message.type.split("/")[1].partition(".")[0] + ".0"
    names = [] if version == "1.0" else [name for _, name in _formats(message)]
    is_anoncreds = names and not any(name.startswith(f"{HLINDY}/") for name in names)
    return MessageFormat(message.prefix, version, ANONCREDS if is_anoncreds else HLINDY)


def attachment_of(message: Message, attachment: Attachment) -> dict[str, JSON]:
    """Return the attached JSON object of this kind.

    In 1.0 the one with the id of this kind, else the first one. In 2.0 only the one
    that `formats` names for a format known here. PeerError `message_parse_failure` if
    there is none, or if its content cannot be decoded or is no JSON object.
    """
    if format_of(message).is_first:
        return read_attachment(message, attachment.member, attachment.identifier)
    places = {name: place for place, name in _formats(message)}
    known = (*attachment.formats.values(), *attachment.others)
    place = next((places[name] for name in known if name in places), None)
    if place is None:
        raise PeerError(
            "message_parse_failure", f"{attachment.member} has no format known here"
        )
    return read_attachment(message, attachment.member, place, or_first=False)


def _formats(message: Message) -> list[tuple[str, str]]:
    """The pairs (attachment id, format) of a message of 2.0, in order."""
    listed = message.body.get("formats")
    entries = (
        [one for one in listed if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )
    pairs = [(entry.get("attach_id"), entry.get("format")) for entry in entries]
    return [
        (place, name)
        for place, name in pairs
        if isinstance(place, str) and isinstance(name, str)
    ]
