"""out-of-band/1.x (RFC 0434) on the wire: invitations, what is attached to them, reuse."""

import re
from typing import NamedTuple

from agency.core.errors import PeerError
from connections.didcomm import dids, message
from connections.didcomm.dids import Party
from connections.didcomm.message import PREFIX, Message, attached, build
from connections.protocols import connections_1_0
from wallets import keys

INVITATION = "out-of-band/1.1/invitation"
REUSE = "out-of-band/1.1/handshake-reuse"
PROBLEM = "out-of-band/1.1/problem_report"
HANDSHAKES = ("didexchange/1.1", "didexchange/1.0", "connections/1.0")
ACCEPT = ["didcomm/aip1", "didcomm/aip2;env=rfc19"]
OFFERED = re.compile(r"(?:^|[/;])(connections|didexchange)/1\.(\d{1,4})/?$")
MAX_LISTED = 8


class Terms(NamedTuple):
    """What whoever invites may choose.

    handshakes: those that are taken, the best first; none: only what is attached can be answered.
    goal_code and goal: what it is for, for programs and for people. is_lasting: it names a key that
    stays, by which an agent that is connected already knows the inviter again.
    """

    handshakes: tuple[str, ...] = HANDSHAKES
    goal_code: str = ""
    goal: str = ""
    is_lasting: bool = False

    @property
    def goals(self) -> dict[str, str]:
        given = {"goal_code": self.goal_code, "goal": self.goal}
        return {name: value for name, value in given.items() if value}


class Invited(NamedTuple):
    """What an invitation says: who invites, by which protocol to connect (none: not at all), and
    the DID of the inviter, if given, by which an earlier connection is found again."""

    inviter: Party
    handshake: str
    did: str


def invitation(
    identifier: str,
    label: str,
    image_url: str,
    party: Party,
    handshakes: tuple[str, ...] = HANDSHAKES,
    **goals: str,
) -> dict:
    """An invitation to connect or, without handshakes, only to answer what it carries."""
    key = keys.did_key_of(party.verkey)
    service = {
        "id": "#inline",
        "type": "did-communication",
        "priority": 0,
        "recipientKeys": [f"{key}#{key.removeprefix('did:key:')}"],
        "routingKeys": [],
        "serviceEndpoint": party.endpoint,
    }
    body = build(INVITATION, label=label, accept=ACCEPT, **goals) | {"@id": identifier}
    if handshakes:
        body["handshake_protocols"] = [PREFIX + name for name in handshakes]
    body["services"] = [service]
    return body | ({"imageUrl": image_url} if image_url else {})


def carrying(invitation: dict, request: dict) -> dict:
    """The invitation with the first message of an exchange attached. That names the invitation:
    ACA-Py finds it so."""
    request = request | {
        "~thread": request.get("~thread", {}) | {"pthid": invitation["@id"]}
    }
    attachment = {
        "@id": "request-0",
        "mime-type": "application/json",
        "data": {"json": request},
    }
    return invitation | {"requests~attach": [attachment]}


def begun(attached: Message) -> dict:
    """What is kept of an invitation whose attached message was taken: the threads that answers
    name. ACA-Py knows them by both."""
    threads = {"thid": attached.thread_id, "pthid": attached.parent_id}
    return {"~thread": threads} if attached.parent_id else {}


def read(received: Message) -> Invited:
    """An invitation to connect, of either kind. PeerError when it cannot be used."""
    if received.family != "out-of-band/1/invitation":
        return Invited(connections_1_0.read_invitation(received), "connections/1.0", "")
    handshake = _handshake(received)
    if not handshake:
        raise PeerError(
            "bad_invitation", "the invitation offers no handshake that is known here"
        )
    request_of(received)
    return Invited(_inviter(received), handshake, _did(received))


def _handshake(received: Message) -> str:
    """The first protocol listed that we know; of DID exchange the newer version."""
    listed = received.body.get("handshake_protocols")
    texts = (
        [str(one) for one in listed[:MAX_LISTED]] if isinstance(listed, list) else []
    )
    found = [match for match in map(OFFERED.search, texts) if match]
    if not found:
        return ""
    name = found[0][1]
    newest = max(int(match[2]) for match in found if match[1] == name)
    return (
        "connections/1.0"
        if name == "connections"
        else f"didexchange/1.{min(newest, 1)}"
    )


def _inviter(received: Message) -> Party:
    listed = received.body.get("services")
    services = listed[:MAX_LISTED] if isinstance(listed, list) else []
    inline = [one for one in services if isinstance(one, dict)]
    did = _did(received)
    if not inline and not did:
        raise PeerError("bad_invitation", "the invitation names no services")
    party = dids.of_document("", {"service": inline}) if inline else dids.read(did)
    if not party.endpoint:
        raise PeerError(
            "bad_invitation", "the invitation gives no http address to answer to"
        )
    return party


def _did(received: Message) -> str:
    listed = received.body.get("services")
    services = listed[:MAX_LISTED] if isinstance(listed, list) else []
    return next((one for one in services if isinstance(one, str)), "")


def request_of(received: Message) -> dict | None:
    """The attached first message of an exchange, as a part of the invitation's thread. PeerError
    if it cannot be read."""
    if not received.body.get("requests~attach"):
        return None
    request = attached(received, "requests~attach")
    thread = request.get("~thread")
    known = thread if isinstance(thread, dict) else {}
    request |= {"~thread": known | {"pthid": received.id}}
    message.read(request)
    return request


def shared(received: Message) -> Message:
    """What an invitation without a handshake is for: the attached message, to be answered at its
    services, as if it had been shared by itself. Any other message stays what it is."""
    if received.family != "out-of-band/1/invitation" or _handshake(received):
        return received
    request = request_of(received)
    if request is None:
        return received
    return message.read(
        request | {"~service": connections_1_0.service(_inviter(received))}
    )


def reuse(invitation_id: str, prefix: str) -> dict:
    """Invitee: we are connected already."""
    body = build(REUSE, prefix)
    return body | {"~thread": {"thid": body["@id"], "pthid": invitation_id}}


def reuse_accepted(answered: Message) -> dict:
    kind = answered.type.replace("handshake-reuse", "handshake-reuse-accepted")
    return build(kind, answered.prefix, answered.thread_id, answered.parent_id)
