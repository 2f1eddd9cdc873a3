"""The encryption envelope of RFC 0019 (pack and unpack, version 1)."""

import base64
import binascii
import json
import os
from collections.abc import Callable
from typing import NamedTuple, NotRequired, TypedDict

from core.errors import PeerError
from core.text import bounded_json
from wallets import keys

# The name in RFC 0019; the cipher is ChaCha20-Poly1305 with a nonce of 12 bytes.
ENCRYPTION = "xchacha20poly1305_ietf"
MAX_RECIPIENTS = 32
SeedFinder = Callable[[list[str]], tuple[str, bytes] | None]


class RecipientHeader(TypedDict):
    """iv, sender: of Authcrypt only."""

    kid: str
    iv: NotRequired[str]
    sender: NotRequired[str]


class Recipient(TypedDict):
    encrypted_key: str
    header: RecipientHeader


class Protected(TypedDict):
    """The protected header as RFC 0019 has it, for which it is taken until it fails."""

    enc: str
    typ: str
    alg: str
    recipients: list[Recipient]


class Opened(NamedTuple):
    """An opened envelope. `sender` is None if it was packed anonymously."""

    body: bytes
    recipient: str
    sender: str | None


class Sender(NamedTuple):
    verkey: str
    seed: bytes


def pack(body: bytes, recipients: list[str], sender: Sender | None) -> bytes:
    """Pack a message into a JSON envelope: Authcrypt with a sender, else Anoncrypt."""
    key, nonce = os.urandom(32), os.urandom(12)
    header = {
        "enc": ENCRYPTION,
        "typ": "JWM/1.0",
        "alg": "Authcrypt" if sender else "Anoncrypt",
        "recipients": [_lock(key, recipient, sender) for recipient in recipients],
    }
    protected = encode_bytes(_write(header))
    sealed = keys.encrypt_aead(body, protected.encode(), nonce, key)
    return _write(
        {
            "protected": protected,
            "iv": nonce,
            "ciphertext": sealed[:-16],
            "tag": sealed[-16:],
        }
    )


def _lock(
    key: bytes, recipient: str, sender: Sender | None
) -> dict[str, bytes | dict[str, str | bytes]]:
    if sender is None:
        return {
            "encrypted_key": keys.seal_anonymous_box(key, recipient),
            "header": {"kid": recipient},
        }
    nonce = os.urandom(keys.NONCE_BYTES)
    return {
        "encrypted_key": keys.seal_box(key, nonce, recipient, sender.seed),
        "header": {
            "kid": recipient,
            "iv": nonce,
            "sender": keys.seal_anonymous_box(sender.verkey.encode(), recipient),
        },
    }


def _write(members: dict) -> bytes:
    """JSON, with bytes in base64url."""
    return json.dumps(members, default=encode_bytes).encode()


def unpack(data: bytes, find_seed: SeedFinder) -> Opened:
    """Open an envelope.

    find_seed: called with the recipients' verkeys; returns one of them with its seed,
    or None. Every envelope that cannot be opened raises the same PeerError
    `cannot_open`.
    """
    try:
        return _unpack(data, find_seed)
    except (
        PeerError,
        bounded_json.BadJSON,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise PeerError("cannot_open", "the envelope does not open") from error


def _unpack(data: bytes, find_seed: SeedFinder) -> Opened:
    """Open an envelope. unpack() turns what is raised here into one PeerError.

    Other exceptions of find_seed, such as RetiredKey, go to its caller.
    """
    envelope = bounded_json.loads(data, unique_keys=True)
    header = bounded_json.loads(decode_bytes(envelope["protected"]), unique_keys=True)
    entries = _recipients(header)
    found = find_seed(list(entries))
    if not found:
        raise KeyError("no recipient is known here")
    kid, seed = found
    sealed = decode_bytes(envelope["ciphertext"]) + decode_bytes(envelope["tag"])
    nonce = decode_bytes(envelope["iv"])
    key, sender = _unlock(entries[kid], seed, header["alg"])
    body = keys.decrypt_aead(sealed, envelope["protected"].encode(), nonce, key)
    return Opened(body, kid, sender)


def _recipients(header: Protected) -> dict[str, Recipient]:
    entries = header["recipients"]
    is_known = (
        header["alg"] in ("Authcrypt", "Anoncrypt") and header["enc"] == ENCRYPTION
    )
    if not is_known or not 1 <= len(entries) <= MAX_RECIPIENTS:
        raise KeyError("not an envelope of RFC 0019")
    return {_verkey(entry["header"]["kid"]): entry for entry in entries}


def _verkey(kid: str) -> str:
    """The recipient's key as a verkey; some agents write it as a did:key."""
    return keys.normalise_verkey(kid) if kid.startswith("did:key:") else kid


def _unlock(entry: Recipient, seed: bytes, algorithm: str) -> tuple[bytes, str | None]:
    encrypted, header = decode_bytes(entry["encrypted_key"]), entry["header"]
    if algorithm == "Anoncrypt":
        return keys.open_anonymous_box(encrypted, seed), None
    sealed, nonce = decode_bytes(header["sender"]), decode_bytes(header["iv"])
    named = keys.open_anonymous_box(sealed, seed).decode("ascii", "replace")
    sender = keys.normalise_verkey(named)
    return keys.open_box(encrypted, nonce, sender, seed), sender


def encode_bytes(data: bytes) -> str:
    """Base64url with padding, in envelopes and signatures; JWS has none."""
    return base64.urlsafe_b64encode(data).decode()


def decode_bytes(data: str) -> bytes:
    """Return the bytes of base64 in either alphabet, padded or not.

    PeerError `message_parse_failure` for another text.
    """
    plain = data.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise PeerError("message_parse_failure", "not base64") from None
