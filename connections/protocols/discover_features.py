"""discover-features 1.0 and 2.0 (RFCs 0031, 0557) on the wire: what each side speaks."""

import re
from typing import Any

from agency.core.errors import PeerError
from connections.didcomm.message import OLD_PREFIX, PREFIX, Message, build, text
from connections.messaging import router

QUERY = "discover-features/1.0/query"
DISCLOSE = "discover-features/1.0/disclose"
QUERIES = "discover-features/2.0/queries"
DISCLOSURES = "discover-features/2.0/disclosures"
ROLES = {
    "basicmessage": ["sender", "receiver"],
    "connections": ["inviter", "invitee"],
    "did-rotate": ["rotating_party", "observing_party"],
    "didexchange": ["requester", "responder"],
    "discover-features": ["requester", "responder"],
    "issue-credential": ["issuer", "holder"],
    "notification": ["sender", "receiver"],
    "out-of-band": ["sender", "receiver"],
    "present-proof": ["verifier", "prover"],
    "revocation_notification": ["notifier", "notified"],
    "trust_ping": ["sender", "receiver"],
}
NAMED = re.compile(r"(?:^|[/;])([\w-]{1,40})/(\d{1,4}\.\d{1,4})/?$", re.ASCII)
MAX_LISTED = 200


def queries(prefix: str) -> dict[str, Any]:
    """Asks for all protocols."""
    asked = [{"feature-type": "protocol", "match": f"{PREFIX}*"}]
    return build(QUERIES, prefix, queries=asked)


def disclose(answered: Message) -> dict[str, Any]:
    """The answer to a query of 1.0."""
    found = _matching(text(answered.body, "query"))
    protocols = [{"pid": answered.prefix + one, "roles": _roles(one)} for one in found]
    return build(DISCLOSE, answered.prefix, answered.thread_id, protocols=protocols)


def disclosures(answered: Message) -> dict[str, Any]:
    """The answer to queries of 2.0. Features of other kinds are none here."""
    asked = _entries(answered.body, "queries")
    wanted = [
        text(one, "match") for one in asked if one.get("feature-type") == "protocol"
    ]
    found = sorted({name for match in wanted[:8] for name in _matching(match)})
    features = [
        {"feature-type": "protocol", "id": answered.prefix + one, "roles": _roles(one)}
        for one in found
    ]
    return build(DISCLOSURES, answered.prefix, answered.thread_id, disclosures=features)


def disclosed(message: Message) -> list[str]:
    """The protocols known here that a peer says it speaks: `issue-credential/2.0`."""
    first = message.family.startswith("discover-features/1/")
    member, name = ("protocols", "pid") if first else ("disclosures", "id")
    found = [NAMED.search(str(one.get(name))) for one in _entries(message.body, member)]
    return sorted(
        {f"{match[1]}/{match[2]}" for match in found if match and match[1] in ROLES}
    )


def _entries(body: dict[str, Any], member: str) -> list[dict[str, Any]]:
    listed = body.get(member)
    if not isinstance(listed, list):
        raise PeerError("message_parse_failure", f"{member} is no list")
    return [one for one in listed[:MAX_LISTED] if isinstance(one, dict)]


def _matching(query: str) -> list[str]:
    """Our protocols that a query with `*` means, in either prefix."""
    parts = [re.escape(part) for part in re.split(r"\*+", query[:200])]
    pattern = re.compile(".*".join(parts))
    names = sorted(router.protocols())
    return [
        n for n in names if any(pattern.fullmatch(p + n) for p in (PREFIX, OLD_PREFIX))
    ]


def _roles(protocol: str) -> list[str]:
    return ROLES[protocol.partition("/")[0]]
