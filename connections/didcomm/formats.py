"""How an exchange of issue-credential or present-proof is written: version, format, attachments.

An attachment is known in 1.0 by its member and id, in 2.0 by its format (RFCs 0036, 0037, 0453,
0454). What is attached is the same in all of them.
"""

from typing import Any, NamedTuple

from agency.core.errors import PeerError
from connections.didcomm.message import Message, attach, attached

HLINDY, ANONCREDS = "hlindy", "anoncreds"
VERSIONS = ("1.0", "2.0")
PROTOCOLS = ("issue-credential", "present-proof")


class Wire(NamedTuple):
    """What the peer of an exchange reads. `format` is `hlindy` or `anoncreds`, used in 2.0 only."""

    prefix: str
    version: str = "1.0"
    format: str = HLINDY

    def type(self, protocol: str, name: str) -> str:
        return f"{protocol}/{self.version}/{name}"


class Kind(NamedTuple):
    """Where something is attached: the member, its id in 1.0, its formats in 2.0, and formats that
    are read and never written."""

    member: str
    identifier: str
    formats: dict[str, str]
    others: tuple[str, ...] = ()


FILTER = Kind(
    "filters~attach",
    "libindy-cred-filter-0",
    {HLINDY: "hlindy/cred-filter@v2.0", ANONCREDS: "anoncreds/credential-filter@v1.0"},
)
OFFER = Kind(
    "offers~attach",
    "libindy-cred-offer-0",
    {HLINDY: "hlindy/cred-abstract@v2.0", ANONCREDS: "anoncreds/credential-offer@v1.0"},
)
REQUEST = Kind(
    "requests~attach",
    "libindy-cred-request-0",
    {HLINDY: "hlindy/cred-req@v2.0", ANONCREDS: "anoncreds/credential-request@v1.0"},
)
CREDENTIAL = Kind(
    "credentials~attach",
    "libindy-cred-0",
    {HLINDY: "hlindy/cred@v2.0", ANONCREDS: "anoncreds/credential@v1.0"},
)
PROOF_PROPOSAL = Kind(
    "proposals~attach",
    "libindy-proof-proposal-0",
    {HLINDY: "hlindy/proof-req@v2.0", ANONCREDS: "anoncreds/proof-request@v1.0"},
    ("anoncreds/proof-proposal@v1.0",),  # of ACA-Py 1.7.0; RFC 0771 has none of its own
)
PROOF_REQUEST = Kind(
    "request_presentations~attach",
    "libindy-request-presentation-0",
    {HLINDY: "hlindy/proof-req@v2.0", ANONCREDS: "anoncreds/proof-request@v1.0"},
)
PRESENTATION = Kind(
    "presentations~attach",
    "libindy-presentation-0",
    {HLINDY: "hlindy/proof@v2.0", ANONCREDS: "anoncreds/proof@v1.0"},
)


def enclose(wire: Wire, kind: Kind, content: dict) -> dict[str, Any]:
    """The members that carry `content` in a message to this peer."""
    members: dict[str, Any] = {kind.member: [attach(kind.identifier, content)]}
    if wire.version != "1.0":
        members["formats"] = [
            {"attach_id": kind.identifier, "format": kind.formats[wire.format]}
        ]
    return members


def wire_of(message: Message) -> Wire:
    """How a received message is written, and so how it is answered."""
    version = message.type.split("/")[1].partition(".")[0] + ".0"
    formats = [] if version == "1.0" else _formats(message)
    is_anoncreds = formats and not any(
        name.startswith(f"{HLINDY}/") for _, name in formats
    )
    return Wire(message.prefix, version, ANONCREDS if is_anoncreds else HLINDY)


def enclosed(message: Message, kind: Kind) -> dict:
    """The JSON object attached as `kind`. PeerError when there is none that we can read."""
    if wire_of(message).version == "1.0":
        return attached(message, kind.member, kind.identifier)
    places = {name: place for place, name in _formats(message)}
    known = (*kind.formats.values(), *kind.others)
    place = next((places[name] for name in known if name in places), None)
    if place is None:
        raise PeerError(
            "message_parse_failure", f"{kind.member} has no format known here"
        )
    return attached(message, kind.member, place)


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
