"""How an exchange of issue-credential or present-proof is written: version, format, attachments.

An attachment is known in 1.0 by its member and id, in 2.0 by its format (RFCs 0036, 0037, 0453,
0454). What is attached is the same in all of them.
"""

from typing import Any, NamedTuple

from agency.core.errors import PeerError
from connections.didcomm.message import Message, json_attachment, read_attachment

HLINDY, ANONCREDS = "hlindy", "anoncreds"
VERSIONS = ("1.0", "2.0")
PROTOCOLS = ("issue-credential", "present-proof")


class MessageFormat(NamedTuple):
    """What the peer of an exchange reads. `format` is `hlindy` or `anoncreds`, used in 2.0 only."""

    prefix: str
    version: str = "1.0"
    format: str = HLINDY

    def type(self, protocol: str, name: str) -> str:
        return f"{protocol}/{self.version}/{name}"


class Attachment(NamedTuple):
    """Where something is attached: the member, its id in 1.0, its formats in 2.0, and formats that
    are read and never written."""

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
    {HLINDY: "hlindy/cred-abstract@v2.0", ANONCREDS: "anoncreds/credential-offer@v1.0"},
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
    ("anoncreds/proof-proposal@v1.0",),  # of ACA-Py 1.7.0; RFC 0771 has none of its own
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
    message_format: MessageFormat, attachment: Attachment, content: dict
) -> dict[str, Any]:
    """The members that carry `content` in a message to this peer."""
    members: dict[str, Any] = {
        attachment.member: [json_attachment(attachment.identifier, content)]
    }
    if message_format.version != "1.0":
        members["formats"] = [
            {
                "attach_id": attachment.identifier,
                "format": attachment.formats[message_format.format],
            }
        ]
    return members


def format_of(message: Message) -> MessageFormat:
    """How a received message is written, and so how it is answered."""
    version = message.type.split("/")[1].partition(".")[0] + ".0"
    formats = [] if version == "1.0" else _formats(message)
    is_anoncreds = formats and not any(
        name.startswith(f"{HLINDY}/") for _, name in formats
    )
    return MessageFormat(message.prefix, version, ANONCREDS if is_anoncreds else HLINDY)


def attachment_of(message: Message, attachment: Attachment) -> dict:
    """The JSON object attached as `attachment`. PeerError when there is none that we can read."""
    if format_of(message).version == "1.0":
        return read_attachment(message, attachment.member, attachment.identifier)
    places = {name: place for place, name in _formats(message)}
    known = (*attachment.formats.values(), *attachment.others)
    place = next((places[name] for name in known if name in places), None)
    if place is None:
        raise PeerError(
            "message_parse_failure", f"{attachment.member} has no format known here"
        )
    return read_attachment(message, attachment.member, place)


def _formats(message: Message) -> list[tuple[str, str]]:
    """(attachment id, format) of each readable entry, in order."""
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
