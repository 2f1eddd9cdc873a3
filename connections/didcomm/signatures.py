"""Signed attachments: a detached JWS over the attached content (RFCs 0017, 0023)."""

import base64
import json

from connections.didcomm.envelope import decode_bytes
from connections.didcomm.message import text
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON
from wallets import keys

MAX_SIGNATURES = 8


def sign(content: bytes, mime_type: str, seed: bytes) -> dict[str, JSON]:
    """Sign content as an attachment. `kid` is in both places where agents look."""
    verkey = keys.verkey_of(seed)
    kid = keys.did_key_of(verkey)
    jwk = {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": _encode_unpadded(keys.decode_key(verkey)),
        "kid": kid,
    }
    payload, protected = (
        _encode_unpadded(content),
        _encode_unpadded(json.dumps({"alg": "EdDSA", "jwk": jwk}).encode()),
    )
    signature = _encode_unpadded(
        keys.sign_bytes(seed, f"{protected}.{payload}".encode())
    )
    jws: dict[str, JSON] = {
        "header": {"kid": kid},
        "protected": protected,
        "signature": signature,
    }
    return {"mime-type": mime_type, "data": {"base64": payload, "jws": jws}}


def content_of(attachment: JSON) -> bytes:
    """The attached bytes. The signature is not checked.

    PeerError `message_parse_failure` if there are none.
    """
    data = attachment.get("data") if isinstance(attachment, dict) else None
    if isinstance(data, dict) and isinstance(data.get("json"), dict):
        return json.dumps(data["json"]).encode()
    return decode_bytes(text(data if isinstance(data, dict) else {}, "base64"))


def signers(attachment: JSON) -> set[str]:
    """The verkeys that signed the attached content; empty if there is no signature.

    PeerError `bad_signature` if any signature is invalid or of an unknown kind,
    `bad_key` if one names a did:key that cannot be read, `message_parse_failure` if a
    part of one, or the content, is missing or not base64.
    """
    data = attachment.get("data") if isinstance(attachment, dict) else None
    jws = data.get("jws") if isinstance(data, dict) else None
    if jws is None:
        return set()
    listed = jws.get("signatures", [jws]) if isinstance(jws, dict) else []
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_SIGNATURES:
        raise bad_signature()
    payload = _encode_unpadded(content_of(attachment))
    return {_signer(entry, payload) for entry in listed}


def _signer(entry: JSON, payload: str) -> str:
    """Check one signature and return its verkey.

    A `kid` that is a did:key must name this verkey. Any other `kid` is ignored: some
    peers write their own name of the key there. Raises the errors of signers().
    """
    if not isinstance(entry, dict):
        raise bad_signature()
    protected = text(entry, "protected")
    header, jwk = _protected(protected)
    verkey = keys.encode_key(decode_bytes(text(jwk, "x")[:64]))
    places = [
        place for place in (entry.get("header"), header, jwk) if isinstance(place, dict)
    ]
    named = [str(place.get("kid")) for place in places]
    claimed = {
        keys.normalise_verkey(kid) for kid in named if kid.startswith("did:key:")
    }
    signed = f"{protected}.{payload}".encode()
    is_signed = keys.is_signed_by(
        verkey, signed, decode_bytes(text(entry, "signature"))
    )
    if claimed - {verkey} or not is_signed:
        raise bad_signature()
    return verkey


def _protected(protected: str) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Decode the protected header; return it and the JWK in it."""
    try:
        header = bounded_json.loads(decode_bytes(protected))
        jwk = header["jwk"]
        is_known = (header["alg"], jwk["kty"], jwk["crv"]) == (
            "EdDSA",
            "OKP",
            "Ed25519",
        )
    except (bounded_json.BadJSON, KeyError, TypeError) as error:
        raise bad_signature() from error
    if not is_known:
        raise bad_signature()
    return header, jwk


def bad_signature() -> PeerError:
    return PeerError("bad_signature", "a signature is wrong or not understood")


def _encode_unpadded(data: bytes) -> str:
    """Base64url without padding, as JWS writes it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
