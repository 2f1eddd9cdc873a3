"""DIDs and their documents: the key of a peer and the endpoint to which to send.

Read: legacy DIDs (unqualified or did:sov) and did:peer:1, whose document comes in the
same message; did:peer:2, did:peer:4 and did:key, which contain their document.
Written: legacy DIDs, did:peer:1 and did:peer:4.
"""

import json
from contextlib import suppress
from typing import NamedTuple

import did_peer_4

from connections.didcomm.envelope import decode_bytes
from connections.didcomm.message import decode_json
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON
from wallets import keys

MAX_TEXT = 8000  # characters of a DID: decoding base58 needs quadratic time
MAX_DID = 2000  # characters of a stored DID; for did:peer:4, of its short form
MAX_KEYS = 8
MAX_ENDPOINT = 2000  # characters, as in the tables
SERVICE_TYPES = ("IndyAgent", "did-communication")
SHORT_NAMES = {"t": "type", "s": "serviceEndpoint", "r": "routingKeys", "a": "accept"}
DID_WEBVH = "did:webvh:"  # how such a DID begins, and the id of an object of one
KEY_MEMBERS = ("authentication", "verificationMethod", "publicKey")


class Party(NamedTuple):
    """One side of a connection. Without an endpoint it must fetch its messages."""

    did: str
    verkey: str
    endpoint: str
    routing_keys: list[str]


def read(did: str, document: dict[str, JSON] | None = None) -> Party:
    """Return the party of a DID that contains its document, or came with it.

    document: the DID document sent with the DID, used if the DID does not contain one.
    No network is read. PeerError `unknown_did` if the DID cannot be resolved here;
    `bad_key` or `message_parse_failure` if its key or its service cannot be read.
    """
    if len(did) > MAX_TEXT:
        raise unknown_did("the DID is too long")
    if did.startswith("did:peer:4"):
        return of_document(did.rpartition(":")[0], _decode_peer_4(did))
    if did.startswith("did:peer:2"):
        return of_document(did, _expand_peer_2(did))
    if did.startswith("did:key:"):
        return Party(did[:MAX_DID], keys.normalise_verkey(did), "", [])
    if document is None:
        raise unknown_did("the DID cannot be resolved here, and no document came along")
    if did.startswith("did:peer:1") and did != _peer_1_of(document):
        raise unknown_did("the document is not the one that did:peer:1 names")
    # Legacy DIDs are stored unqualified.
    return of_document(did.removeprefix("did:sov:"), document)


def carries_document(did: str) -> bool:
    return did.startswith(("did:peer:2", "did:peer:4", "did:key:"))


def unknown_did(reason: str) -> PeerError:
    return PeerError("unknown_did", reason)


def of_document(did: str, document: dict[str, JSON]) -> Party:
    """Return the party described by a DID document, legacy or W3C.

    Keys may be raw, key ids or did:key. A mobile wallet may have no service at all. If
    the endpoint is the DID of a mediator, messages go to the mediator's endpoint, and
    its keys are added to the routing keys. PeerError as of read(), `unknown_did` also
    without an Ed25519 key.
    """
    if len(did) > MAX_DID:
        raise unknown_did("the DID is too long")
    entries = [entry for member in KEY_MEMBERS for entry in _dicts(document, member)]
    # Ed25519 keys with their ids, authentication keys first.
    known = [
        (_absolute(str(entry.get("id")), did), verkey)
        for entry in entries
        if (verkey := _read_verkey(entry))
    ]
    service = _service(document)
    recipients = read_texts(service, "recipientKeys")
    if not recipients and not known:
        raise unknown_did("the document has no Ed25519 key")
    # Only the first recipient is written to: the others may have keys of other kinds.
    verkey = (
        _resolve(_absolute(recipients[0], did), known) if recipients else known[0][1]
    )
    routing_keys = [
        _resolve(_absolute(key, did), known)
        for key in read_texts(service, "routingKeys")
    ]
    endpoint = _endpoint(service)
    if endpoint.startswith("did:"):
        mediator = read(endpoint)
        endpoint = mediator.endpoint
        routing_keys += [mediator.verkey, *mediator.routing_keys]
    return Party(did, verkey, reachable(endpoint), routing_keys)


def reachable(endpoint: str) -> str:
    """Return the endpoint if it is an HTTP URL of at most 2000 characters, else "".

    Messages then wait to be fetched.
    """
    is_url = endpoint.startswith(("http://", "https://"))
    return endpoint if is_url and len(endpoint) <= MAX_ENDPOINT else ""


def read_texts(service: dict[str, JSON], member: str) -> list[str]:
    """The texts in a list of a service, of its first MAX_KEYS entries."""
    listed = service.get(member)
    entries = listed[:MAX_KEYS] if isinstance(listed, list) else []
    return [entry for entry in entries if isinstance(entry, str)]


def _dicts(document: dict[str, JSON], member: str) -> list[dict[str, JSON]]:
    listed = document.get(member)
    return (
        [one for one in listed if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )


def _read_verkey(entry: dict[str, JSON]) -> str:
    """The verkey of an entry, or "" if it is not an Ed25519 key."""
    with suppress(PeerError):  # a key of another kind may be in the same member
        if key := _public_key(entry):
            return keys.normalise_verkey(key)
    return ""


def _public_key(entry: dict[str, JSON]) -> str:
    """The key in any of its three encodings, or "" if it says that it is another kind."""
    multibase, jwk = entry.get("publicKeyMultibase"), entry.get("publicKeyJwk")
    if isinstance(multibase, str):
        return f"did:key:{multibase}" if multibase.startswith("z6Mk") else ""
    if isinstance(jwk, dict):
        number = jwk.get("x")
        if jwk.get("crv") != "Ed25519" or not isinstance(number, str):
            return ""
        return keys.encode_key(decode_bytes(number[:64]))
    raw = entry.get("publicKeyBase58")
    return (
        raw
        if isinstance(raw, str) and not str(entry.get("type")).startswith("X25519")
        else ""
    )


def _service(document: dict[str, JSON]) -> dict[str, JSON]:
    """The service to use: prefer an HTTP endpoint, then the lowest priority."""
    usable = [
        one for one in _dicts(document, "service") if one.get("type") in SERVICE_TYPES
    ]
    return min(
        usable,
        key=lambda one: (not reachable(_endpoint(one)), _priority(one)),
        default={},
    )


def _priority(service: dict[str, JSON]) -> int:
    priority = service.get("priority")
    return priority if isinstance(priority, int) else 0


def _endpoint(service: dict[str, JSON]) -> str:
    endpoint = service.get("serviceEndpoint")
    if isinstance(endpoint, dict):
        endpoint = endpoint.get("uri")
    return endpoint if isinstance(endpoint, str) else ""


def _absolute(key_id: str, did: str) -> str:
    """The id of a key with the DID of its document."""
    return did + key_id if key_id.startswith("#") else key_id


def _resolve(key: str, known: list[tuple[str, str]]) -> str:
    """The verkey that a service names by the id of a key, or contains.

    Agents write another DID of the same party before the fragment, such as the long
    form of a did:peer:4: without an equal id, the fragment counts. PeerError
    `unknown_did` if several keys have that id or fragment.
    """
    if key.startswith("did:key:"):
        return keys.normalise_verkey(key)
    fragment = key.rpartition("#")[2]
    named = {verkey for key_id, verkey in known if key_id == key} or {
        verkey for key_id, verkey in known if key_id.rpartition("#")[2] == fragment
    }
    if len(named) > 1:
        raise unknown_did(f"several keys of the document are called {key[:100]}")
    return next(iter(named)) if named else keys.normalise_verkey(key)


def _decode_peer_4(did: str) -> dict[str, JSON]:
    """The document in the long form of a did:peer:4."""
    try:
        # Parsed once more with our limits for JSON of strangers.
        document = bounded_json.loads(json.dumps(did_peer_4.decode(did)))
    except (ValueError, RecursionError) as error:
        raise unknown_did(f"not a did:peer:4 in its long form: {error}"[:200]) from None
    if not isinstance(document, dict):
        raise unknown_did("did:peer:4 holds no document")
    return document


def _expand_peer_2(did: str) -> dict[str, JSON]:
    """Build the document of a did:peer:2. Keys are named by number and by value."""
    authentication: list[JSON] = []
    services: list[JSON] = []
    parts = did.split(".")[1:]
    for number, part in enumerate((part for part in parts if part[:1] != "S"), start=1):
        if part.startswith("V"):
            for key_id in (f"#key-{number}", f"#{part[2:]}"):
                authentication.append({"id": key_id, "publicKeyMultibase": part[1:]})
    for part in parts:
        if part.startswith("S"):
            content = decode_json(part[1:])
            listed = content if isinstance(content, list) else [content]
            # The service may name no recipient: of_document() then uses the first key.
            services += [
                {SHORT_NAMES.get(name) or name: value for name, value in one.items()}
                for one in listed
                if isinstance(one, dict)
            ]
    return {"authentication": authentication, "service": services}


def own_document(verkey: str, endpoint: str, **of_key: str) -> dict[str, JSON]:
    """Our W3C document, without id: one key and one service.

    The shape is the one that ACA-Py and Credo read in did:peer:4.
    """
    return {
        "@context": ["https://www.w3.org/ns/did/v1"],
        "verificationMethod": [
            {
                "id": "#key-1",
                "type": "Ed25519VerificationKey2018",
                "publicKeyBase58": verkey,
                **of_key,
            }
        ],
        "authentication": ["#key-1"],
        "service": [
            {
                "id": "#didcomm-0",
                "type": "did-communication",
                "priority": 0,
                "recipientKeys": ["#key-1"],
                "routingKeys": [],
                "serviceEndpoint": endpoint,
            }
        ],
    }


def peer_4(verkey: str, endpoint: str) -> str:
    """Our did:peer:4 in its long form, which contains the document."""
    return did_peer_4.encode(own_document(verkey, endpoint))


def peer_1(verkey: str, endpoint: str) -> tuple[str, dict[str, JSON]]:
    """Our did:peer:1 and its document, for agents that do not know did:peer:4."""
    # The DID is the hash of the document, so the document cannot contain it.
    content = own_document(verkey, endpoint, controller="#id")
    did = _peer_1_of(content)
    return did, {"id": did, **content}


def _peer_1_of(document: dict[str, JSON]) -> str:
    """The did:peer:1 of a document: the multihash of its JSON without the id."""
    content = {name: value for name, value in document.items() if name != "id"}
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return f"did:peer:1z{keys.multihash(data)}"


def legacy_document(party: Party) -> dict[str, JSON]:
    """The DIDDoc of connections/1.0, in the shape that all known peers read."""
    key_id = f"{party.did}#1"
    return {
        "@context": "https://w3id.org/did/v1",
        "id": party.did,
        "publicKey": [
            {
                "id": key_id,
                "type": "Ed25519VerificationKey2018",
                "controller": party.did,
                "publicKeyBase58": party.verkey,
            }
        ],
        "authentication": [
            {"type": "Ed25519SignatureAuthentication2018", "publicKey": key_id}
        ],
        "service": [
            {
                "id": f"{party.did};indy",
                "type": "IndyAgent",
                "priority": 0,
                "recipientKeys": [party.verkey],
                "routingKeys": [*party.routing_keys],
                "serviceEndpoint": party.endpoint,
            }
        ],
    }
