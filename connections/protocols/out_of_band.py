"""out-of-band/1.x (RFC 0434): invitations, attached messages, connection reuse."""

import re
import uuid
from typing import NamedTuple

from connections import resolver
from connections.didcomm import dids
from connections.didcomm import message as didcomm
from connections.didcomm.dids import Party
from connections.didcomm.message import (
    PREFIX,
    Body,
    Message,
    build,
    object_in,
    read_attachment,
)
from connections.didcomm.service import write_service
from connections.messaging import outbox, router
from connections.messaging.router import handles, locks_others
from connections.models import Connection
from connections.protocols import connections_1_0
from connections.protocols.refusals import dispatch_or_report
from core.errors import PeerError
from core.text.bounded_json import JSON
from tenants import vault
from tenants.models import Tenant
from wallets import keys
from wallets.models import Key

INVITATION = "out-of-band/1.1/invitation"
REUSE = "out-of-band/1.1/handshake-reuse"
PROBLEM = "out-of-band/1.1/problem_report"
HANDSHAKE_VERSIONS = ("didexchange/1.1", "didexchange/1.0", "connections/1.0")
ACCEPT = ["didcomm/aip1", "didcomm/aip2;env=rfc19"]
OFFERED_PROTOCOL = re.compile(r"(?:^|[/;])(connections|didexchange)/1\.(\d{1,4})/?$")
MAX_LISTED = 8  # protocols or services that are read


class OutOfBandOptions(NamedTuple):
    """The options of an out-of-band invitation.

    handshakes: the accepted protocols, preferred first. Without any, the invitee can
    only answer the attached message.
    goal_code, goal: the purpose of the invitation, for programs and for people.
    is_lasting: use the wallet's public key instead of a new one, so that an agent that
    is already connected recognises the inviter.
    by_public_did: name the inviter by the wallet's public DID, which must have an
    endpoint. It is lasting, too.
    is_second: beside an invitation of connections/1.0. link_has_both: the link and its QR
    code carry such a second one too.
    """

    handshakes: tuple[str, ...] = HANDSHAKE_VERSIONS
    goal_code: str = ""
    goal: str = ""
    is_lasting: bool = False
    by_public_did: bool = False
    is_second: bool = False
    link_has_both: bool = False


class ReceivedInvitation(NamedTuple):
    """A received invitation to connect.

    handshake: the protocol to use. did: the inviter's DID or "", by which an earlier
    connection is found.
    """

    inviter: Party
    handshake: str
    did: str


def build_invitation(
    identifier: str,
    label: str,
    image_url: str,
    party: Party,
    handshakes: tuple[str, ...] = HANDSHAKE_VERSIONS,
    **goals: str,
) -> Body:
    """Build an invitation to connect or, without handshakes, only to answer.

    party: our side; the key is written as a did:key. goals: `goal_code`, `goal`.
    """
    key = keys.did_key_of(party.verkey)
    service: dict[str, JSON] = {
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


def with_attachment(invitation: Body, request: Body) -> Body:
    """The invitation with the first message of an exchange attached.

    The message names the invitation as its parent, by which ACA-Py finds it.
    """
    request = request | {
        "~thread": object_in(request, "~thread") | {"pthid": invitation["@id"]}
    }
    attachment: dict[str, JSON] = {
        "@id": "request-0",
        "mime-type": "application/json",
        "data": {"json": request},
    }
    return invitation | {"requests~attach": [attachment]}


def attachment_thread(attached: Message) -> dict[str, JSON]:
    """The `~thread` to keep of an invitation whose attached message was accepted.

    It has the thread and the parent that answers must name: ACA-Py finds the exchange
    by both. Connection.with_decorators() adds it to each answer.
    """
    if not attached.parent_id:
        return {}
    return {"~thread": {"thid": attached.thread_id, "pthid": attached.parent_id}}


def read_invitation(received: Message, tenant: Tenant) -> ReceivedInvitation:
    """Read an invitation of either protocol.

    PeerError `bad_invitation` if it cannot be used; DidNotResolved. In a transaction,
    ReadNeeded for a DID that must be read from a network. tenant: the organization on
    whose behalf it is.
    """
    if received.major_type != "out-of-band/1/invitation":
        inviter = connections_1_0.read_invitation(received, tenant)
        return ReceivedInvitation(inviter, "connections/1.0", inviter.did)
    handshake = _handshake(received)
    if not handshake:
        raise PeerError(
            "bad_invitation", "the invitation offers no handshake that is known here"
        )
    read_attached_request(received)  # raises if it cannot be read
    return ReceivedInvitation(_inviter(received, tenant), handshake, _did(received))


def _handshake(received: Message) -> str:
    """The handshake to use, or "" if none of those listed is known here.

    It is that of the first listed protocol, in the newest version that is listed.
    """
    listed = received.body.get("handshake_protocols")
    texts = (
        [str(one) for one in listed[:MAX_LISTED]] if isinstance(listed, list) else []
    )
    found = [match for match in map(OFFERED_PROTOCOL.search, texts) if match]
    if not found:
        return ""
    name = found[0][1]
    newest = max(int(match[2]) for match in found if match[1] == name)
    # A newer minor version than ours is answered in 1.1.
    return (
        "connections/1.0"
        if name == "connections"
        else f"didexchange/1.{min(newest, 1)}"
    )


def _inviter(received: Message, tenant: Tenant) -> Party:
    """The inviter, by the first usable service. PeerError `bad_invitation` without one.

    A service written out in the invitation comes before a DID, which must be resolved.
    """
    listed = received.body.get("services")
    services = listed[:MAX_LISTED] if isinstance(listed, list) else []
    inline: list[JSON] = [one for one in services if isinstance(one, dict)]
    did = _did(received)
    if not inline and not did:
        raise PeerError("bad_invitation", "the invitation names no services")
    if not inline:
        return resolver.resolve_reachable(did, tenant)
    party = dids.of_document("", {"service": inline})
    if not party.endpoint:
        raise PeerError(
            "bad_invitation", "the invitation gives no http address to answer to"
        )
    return party


def _did(received: Message) -> str:
    """The first DID among the services, or ""."""
    listed = received.body.get("services")
    services = listed[:MAX_LISTED] if isinstance(listed, list) else []
    return next((one for one in services if isinstance(one, str)), "")


def read_attached_request(received: Message) -> Body | None:
    """The attached first message of an exchange, with the invitation as its parent.

    None without an attachment; PeerError if the attachment cannot be read.
    """
    if not received.body.get("requests~attach"):
        return None
    request = read_attachment(received, "requests~attach")
    request |= {"~thread": object_in(request, "~thread") | {"pthid": received.id}}
    didcomm.read(request)
    return request


def unwrap_request(received: Message, tenant: Tenant) -> Message:
    """Turn an invitation without a handshake into its attached message.

    The message gets a `~service` with the invitation's services, as if it had been
    shared by itself. Any other message is returned unchanged.
    tenant: the organization on whose behalf a DID is resolved.
    """
    if received.major_type != "out-of-band/1/invitation" or _handshake(received):
        return received
    request = read_attached_request(received)
    if request is None:
        return received
    service = write_service(_inviter(received, tenant))
    return didcomm.read(request | {"~service": service})


def write_invitation(connection: Connection, options: OutOfBandOptions) -> None:
    """Set the out-of-band invitation of a new connection. Does not save the row."""
    wallet = connection.wallet
    if options.is_lasting or options.by_public_did:
        key = wallet.public_key
    elif options.handshakes:
        key = wallet.create_key()
        connection.invitation_key = key
    else:
        assert connection.my_key, "without a handshake the exchange has its key already"
        key = connection.my_key
    connection.handshake = next(iter(options.handshakes), "")
    connection.invitation = _build(connection, options, str(connection.pk), key)


def write_second_invitation(connection: Connection, options: OutOfBandOptions) -> None:
    """Set the out-of-band invitation beside that of connections/1.0.

    It has the same key and id, so whoever comes first by either has the connection.
    Does not save the row.
    """
    identifier, key = connection.invitation["@id"], connection.inviting_key
    connection.out_of_band = _build(connection, options, identifier, key)
    connection.link_has_both = options.link_has_both


def _build(
    connection: Connection, options: OutOfBandOptions, identifier: str, key: Key
) -> Body:
    goals = {"goal_code": options.goal_code, "goal": options.goal}
    invitation = build_invitation(
        identifier=identifier,
        label=connection.inviter_name,
        image_url=connection.wallet.image_url,
        party=connection.own_party(key),
        handshakes=options.handshakes,
        **{name: value for name, value in goals.items() if value},
    )
    if options.by_public_did:
        invitation["services"] = [connection.wallet.qualified_did]
    return invitation


def reuse_connection(connection: Connection, invitation: Message) -> None:
    """Invitee: ask the inviter to go on over this connection, without a new handshake.

    In the caller's transaction, which has locked the connection; an earlier invitation
    of the same inviter made it. What is attached to this invitation waits, sealed, for
    the inviter's answer (receive_reuse_accepted). Nothing is sent for the invitation
    that made the connection, for one of connections/1.0, which knows no reuse, or
    before the handshake is done.
    """
    is_other = invitation.id != connection.invitation.get("@id")
    is_out_of_band = invitation.protocol[0] == "out-of-band"
    is_connected = connection.state == Connection.State.CONNECTED
    if not (is_other and is_out_of_band and is_connected):
        return
    # On an invitee's row `shared` is the message that waits, not the content of a link.
    vault.seal(connection, "shared", read_attached_request(invitation))
    connection.save(update_fields=["shared"])
    body = build(REUSE, connection.message_prefix)
    thread = {"thid": body["@id"], "pthid": invitation.id}
    outbox.enqueue(connection, body | {"~thread": thread})


@handles("out-of-band/1.0/handshake-reuse", "1.1")
def receive_reuse(connection: Connection, message: Message) -> None:
    """Inviter: move the exchange of another invitation to this connection.

    In the transaction of inbox.handle(), which has locked the connection. Deletes the
    invitation unless it is multi-party. PeerError `expired-invitation`, a code of RFC
    0434, if it is not open.
    """
    found = (row.lock() for row in find_invitation(connection, message))
    invitation = next(found, None)
    if not invitation or not invitation.is_open or invitation.is_expired:
        raise PeerError(
            "expired-invitation",
            "there is no such invitation, or it was used, or it has expired",
        )
    router.move_exchanges(invitation, connection)
    if not invitation.multi_party:
        invitation.remove()
        connection.adopt()  # what the organization invited to comes from it
    kind = message.type.replace("handshake-reuse", "handshake-reuse-accepted")
    accepted = build(kind, message.prefix, message.thread_id, message.parent_id)
    outbox.enqueue(connection, accepted)


@locks_others("out-of-band/1.0/handshake-reuse")
def find_invitation(connection: Connection, message: Message) -> list[Connection]:
    """Inviter: the invitation that a message answers, if it is there."""
    try:
        pk = uuid.UUID(message.parent_id)
    except ValueError:
        return []
    rows = Connection.objects.filter(pk=pk, wallet=connection.wallet_id)
    return list(rows.filter(connectionless=False, role=Connection.Role.INVITER))


@handles("out-of-band/1.0/handshake-reuse-accepted", "1.1")
def receive_reuse_accepted(connection: Connection, message: Message) -> None:
    """Invitee: handle the message that was attached to the invitation.

    Not if the answer is about an earlier invitation than the one whose message waits.
    """
    request = vault.unseal(connection, "shared")
    if request and request["~thread"]["pthid"] == message.parent_id:
        receive_attached(connection)


@handles(PROBLEM)
def receive_problem(connection: Connection, message: Message) -> None:
    """Do nothing: the connection that was to be reused does not change."""


def receive_attached(connection: Connection) -> None:
    """Invitee: handle the attached message as if the peer had sent it now.

    In the caller's transaction, which has locked the connection. It happens once: the
    message is erased first. A refusal is reported to the peer and not raised.
    """
    request = vault.unseal(connection, "shared")
    if request is None:
        return
    received = didcomm.read(request).with_sender(connection.their_key)
    connection.shared = None
    connection.invitation |= attachment_thread(received)
    connection.save(update_fields=["shared", "invitation"])
    dispatch_or_report(connection, received)
