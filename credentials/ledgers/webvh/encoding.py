"""The bytes of did:webvh: hashes, keys and proofs of log entries and resources.

did:webvh 1.0 (https://identity.foundation/didwebvh/v1.0/), its AnonCreds method, and
`eddsa-jcs-2022` (https://www.w3.org/TR/vc-di-eddsa/). No Django and no network here.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

import rfc8785

from core.errors import PeerError
from core.text.bounded_json import JSON, Members
from credentials.ledgers.webvh.refusals import Broken
from wallets import keys

METHOD = "did:webvh:1.0"
SCID_PLACEHOLDER = "{SCID}"
CRYPTOSUITE = "eddsa-jcs-2022"
MAX_MULTIBASE = 100  # characters: a signature has 89

Document = Mapping[str, JSON]


def canonical(value: Document) -> bytes:
    """Return a JSON object as RFC 8785 writes it (JCS).

    Broken `not_canonical` if it cannot: an integer beyond 53 bits, half of a pair.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError):
        raise Broken("not_canonical") from None


def hash_of(value: Document) -> str:
    """The hash of SCIDs, entries and resources. It has no `z` of multibase."""
    return keys.multihash(canonical(value))


def resource_digest(content: Document) -> str:
    """The last part of the id of a resource: the hash of its content alone."""
    return f"z{hash_of(content)}"


def multikey_of(verkey: str) -> str:
    """The multikey `z6Mk…` of a verkey in base58."""
    return keys.did_key_of(verkey).removeprefix("did:key:")


def verkey_of(multikey: str) -> str:
    """The verkey of a multikey. PeerError `bad_key` if it is no Ed25519 key."""
    verkey = keys.encode_key(keys.decode_key(f"did:key:{multikey}"))
    if multikey_of(verkey) != multikey:
        raise PeerError("bad_key", "not an Ed25519 key")
    return verkey


def next_key_hash(multikey: str) -> str:
    """What announces a key: the hash of its text, not of its bytes."""
    return keys.multihash(multikey.encode())


def did_key_id(multikey: str) -> str:
    """The verification method of an update key, as proofs of entries name it."""
    return f"did:key:{multikey}#{multikey}"


def format_time(moment: datetime) -> str:
    """A moment as entries and proofs have it, such as `2026-01-05T09:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def without(document: Document, member: str) -> Members:
    return {name: value for name, value in document.items() if name != member}


def replace_text(document: Document, old: str, new: str) -> Members:
    """A copy with `old` replaced in all texts. Both need no escapes in JSON."""
    return json.loads(json.dumps(document).replace(old, new))


def scid_of(entry: Document, scid: str = SCID_PLACEHOLDER) -> str:
    """The SCID of a first entry.

    scid: what stands in it for the SCID: the placeholder before, the SCID after.
    """
    genesis = replace_text(without(entry, "proof"), scid, SCID_PLACEHOLDER)
    return hash_of(genesis | {"versionId": SCID_PLACEHOLDER})


def version_id_of(entry: Document, number: int, previous: str) -> str:
    """The versionId of an entry: its number and its hash.

    previous: the versionId of the entry before; for the first entry, the SCID.
    """
    hashed = without(entry, "proof") | {"versionId": previous}
    return f"{number}-{hash_of(hashed)}"


def make_proof(
    document: Document, seed: bytes, verification_method: str, created: str
) -> dict[str, str]:
    """Return the proof of a document by an Ed25519 key. An older `proof` is ignored.

    created: see format_time().
    """
    proof = {
        "type": "DataIntegrityProof",
        "cryptosuite": CRYPTOSUITE,
        "verificationMethod": verification_method,
        "created": created,
        "proofPurpose": "assertionMethod",
    }
    signature = keys.sign_bytes(seed, _signed_bytes(document, proof))
    return proof | {"proofValue": f"z{keys.encode_key(signature)}"}


def is_proven(document: Document, proof: Document, multikey: str) -> bool:
    """Return whether this is the proof of a document by the key, for assertions.

    Who may sign is the caller's question. Broken `not_canonical`.
    """
    value = proof.get("proofValue")
    is_known = (
        proof.get("type") == "DataIntegrityProof"
        and proof.get("cryptosuite") == CRYPTOSUITE
        and proof.get("proofPurpose") == "assertionMethod"
    )
    if not is_known or not isinstance(value, str):
        return False
    try:
        verkey, signature = verkey_of(multikey), _decode_multibase(value)
    except (PeerError, ValueError):
        return False
    return keys.is_signed_by(verkey, _signed_bytes(document, proof), signature)


def _signed_bytes(document: Document, proof: Document) -> bytes:
    """What a proof signs: the hash of the proof first, then that of the document."""
    parts = without(proof, "proofValue"), without(document, "proof")
    return b"".join(hashlib.sha256(canonical(part)).digest() for part in parts)


def _decode_multibase(text: str) -> bytes:
    """The bytes of a text in base58btc multibase. ValueError for any other spelling."""
    if not text.startswith("z") or len(text) > MAX_MULTIBASE:
        raise ValueError("not base58btc")
    data = keys.decode_base58(text[1:])
    if keys.encode_key(data) != text[1:]:
        raise ValueError("another spelling of the same bytes")
    return data
