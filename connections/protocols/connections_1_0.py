"""Messages of connections/1.0 (RFC 0160): invitation, request, signed response."""

import json
import secrets
import time

from connections import resolver
from connections.didcomm import dids
from connections.didcomm.dids import Party, reachable, read_texts
from connections.didcomm.envelope import decode_bytes, encode_bytes
from connections.didcomm.message import Body, Message, build, text
from connections.protocols import trust_ping
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON
from tenants.models import Tenant
from wallets import keys

INVITATION = "connections/1.0/invitation"
REQUEST = "connections/1.0/request"
RESPONSE = "connections/1.0/response"
PROBLEM = "connections/1.0/problem_report"
ACK = "notification/1.0/ack"
SIGNATURE = "signature/1.0/ed25519Sha512_single"


def build_invitation(label: str, image_url: str, verkey: str, endpoint: str) -> Body:
    message = build(
        INVITATION,
        label=label,
        recipientKeys=[verkey],
        serviceEndpoint=endpoint,
        routingKeys=[],
    )
    message["@id"] = secrets.token_urlsafe(8)  # a UUID would make its QR code larger
    return message | ({"imageUrl": image_url} if image_url else {})


def build_did_invitation(identifier: str, label: str, did: str) -> Body:
    """Build an invitation by a public DID. A request names the identifier."""
    return build(INVITATION, label=label, did=did) | {"@id": identifier}


def build_request(
    label: str, image_url: str, party: Party, prefix: str, parent: str | None = None
) -> Body:
    """Build a request. parent: the id of the invitation, unless its key names it."""
    message = build(
        REQUEST, prefix, parent=parent, label=label, connection=did_document(party)
    )
    return message | ({"imageUrl": image_url} if image_url else {})


def read_request(message: Message) -> Party:
    return read_party(message.body.get("connection"))


def build_response(party: Party, invitation_seed: bytes, answered: Message) -> Body:
    """Build the response: `connection` is signed with the key of the invitation."""
    signed = sign(did_document(party), invitation_seed, answered.prefix)
    members = {"connection~sig": signed}
    return build(RESPONSE, answered.prefix, answered.thread_id, None, **members)


def read_response(message: Message, inviter_key: str) -> Party:
    return read_party(read_signed(message.body.get("connection~sig"), inviter_key))


def build_last_message(prefix: str) -> Body:
    """Build a ping, as the invitee's last message.

    Any message of the invitee connects the inviter; all agents know a ping.
    """
    return build(trust_ping.PING, prefix, response_requested=False)


def sign(content: dict[str, JSON], seed: bytes, prefix: str) -> dict[str, JSON]:
    """Sign content as `~sig` (RFC 0234): over 8 bytes of time and the JSON."""
    data = int(time.time()).to_bytes(8, "big") + json.dumps(content).encode()
    return {
        "@type": prefix + SIGNATURE,
        "signer": keys.verkey_of(seed),
        "sig_data": encode_bytes(data),
        "signature": encode_bytes(keys.sign_bytes(seed, data)),
    }


def read_signed(decorated: JSON, signer: str) -> dict[str, JSON]:
    """The signed content of `~sig`, such as `connection~sig`.

    PeerError `response_not_accepted` unless `signer` (a verkey) has signed it. The time
    before the content is ignored: peers write it in either byte order or as zeros.
    """
    if not isinstance(decorated, dict):
        raise PeerError("response_not_accepted", "connection~sig is missing")
    data = decode_bytes(text(decorated, "sig_data"))
    signature = decode_bytes(text(decorated, "signature"))
    named = keys.normalise_verkey(text(decorated, "signer"))
    if named != signer or not keys.is_signed_by(signer, data, signature):
        raise PeerError(
            "response_not_accepted", "the signature is not the invitation key's"
        )
    try:
        content = bounded_json.loads(data[8:])
    except bounded_json.BadJSON:
        content = None
    if not isinstance(content, dict):
        raise PeerError("response_not_accepted", "the signed data is no JSON object")
    return content


def did_document(party: Party) -> dict[str, JSON]:
    """The `connection` member: DID and legacy DIDDoc."""
    return {"DID": party.did, "DIDDoc": dids.legacy_document(party)}


def read_party(connection: JSON) -> Party:
    """The sender, from the `connection` member of a request or response.

    PeerError `request_not_accepted` without a DIDDoc.
    """
    if not isinstance(connection, dict) or not isinstance(
        document := connection.get("DIDDoc"), dict
    ):
        raise PeerError("request_not_accepted", "connection.DIDDoc is missing")
    return dids.of_document(text(connection, "DID").removeprefix("did:sov:"), document)


def read_invitation(message: Message, tenant: Tenant) -> Party:
    """The inviter whom an invitation names: by its keys, or else by its public DID.

    Its `did` is "" if the invitation has keys. PeerError `bad_invitation`, `bad_key` or
    `message_parse_failure` if it cannot be used. A DID is resolved on behalf of
    `tenant`: the errors of resolver.resolve_reachable().
    """
    if message.major_type != "connections/1/invitation":
        raise PeerError(
            "bad_invitation", f"{message.type} is not a connection invitation"
        )
    recipients = read_texts(message.body, "recipientKeys")
    if not recipients and "did" in message.body:
        return resolver.resolve_reachable(text(message.body, "did"), tenant)
    if not recipients:
        raise PeerError("bad_invitation", "the invitation has no recipientKeys")
    endpoint = reachable(text(message.body, "serviceEndpoint"))
    if not endpoint:
        raise PeerError(
            "bad_invitation", "the invitation gives no http address to answer to"
        )
    routing_keys = [
        keys.normalise_verkey(key) for key in read_texts(message.body, "routingKeys")
    ]
    return Party("", keys.normalise_verkey(recipients[0]), endpoint, routing_keys)
