"""Ed25519 signing keys, and NaCl boxes with them. Only this module imports PyNaCl.

A private key is a seed of 32 bytes, a public key ("verkey") is base58 text. Boxes use
the X25519 keys to which both are converted (RFC 0019).
"""

import hashlib
import os
from functools import lru_cache

import base58
from nacl import bindings
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey, VerifyKey

from core.errors import PeerError

NONCE_BYTES = Box.NONCE_SIZE  # 24
ED25519 = b"\xed\x01"  # the multicodec prefix
SHA_256 = b"\x12\x20"  # the prefix of a multihash: SHA-256, 32 bytes
MAX_TEXT = 128  # decoding base58 takes quadratic time, and the text is untrusted


def generate_seed() -> bytes:
    return os.urandom(32)


def verkey_of(seed: bytes) -> str:
    """Return the public key of a seed of 32 bytes, in base58."""
    return encode_key(bytes(SigningKey(seed).verify_key))


# Public keys only are remembered, and only those that could be read.
@lru_cache(maxsize=10_000)
def did_of(verkey: str) -> str:
    """Return the unqualified Indy DID: base58 of the first 16 bytes of the verkey.

    PeerError `bad_key` if decode_key() cannot read it.
    """
    return encode_key(decode_key(verkey)[:16])


def encode_key(data: bytes) -> str:
    """Return bytes in base58: a key, or part of one."""
    return base58.b58encode(data).decode()


def multihash(data: bytes) -> str:
    """Return the multihash of data by SHA-256, in base58."""
    return encode_key(SHA_256 + hashlib.sha256(data).digest())


def decode_base58(text: str) -> bytes:
    """Return the bytes of a text in base58, such as a signature. ValueError."""
    if len(text) > MAX_TEXT:
        raise ValueError("too long")
    return base58.b58decode(text)


def decode_key(verkey: str) -> bytes:
    """Return the 32 bytes of a verkey in base58 or as did:key.

    The did:key may have a fragment. Also decodes a seed in base58. PeerError `bad_key`
    for any other text.
    """
    if len(verkey) > MAX_TEXT:
        raise PeerError("bad_key", "not an Ed25519 key")
    try:
        if verkey.startswith("did:key:z"):
            data = base58.b58decode(verkey[len("did:key:z") :].partition("#")[0])
            prefix, data = data[:2], data[2:]
            if prefix != ED25519:
                raise ValueError
        else:
            data = base58.b58decode(verkey)
    except ValueError:
        raise PeerError("bad_key", "not an Ed25519 key") from None
    if len(data) != 32:
        raise PeerError("bad_key", "not an Ed25519 key")
    return data


@lru_cache(maxsize=10_000)
def normalise_verkey(verkey: str) -> str:
    """Return a verkey in base58, from any form that decode_key() accepts.

    PeerError `bad_key` for another one, and for 32 bytes to which nothing can be
    encrypted: most texts of that length are no point of the curve.
    """
    normalised = encode_key(decode_key(verkey))
    _public(normalised)
    return normalised


def expand_verkey(did: str, verkey: str) -> str:
    """Return the verkey of an Indy DID in base58. The ledger may have its short form.

    The short form is `~` and the bytes that the DID does not have. Raises
    PeerError("bad_key").
    """
    if not verkey.startswith("~"):
        return normalise_verkey(verkey)
    if len(did) + len(verkey) > MAX_TEXT:
        raise PeerError("bad_key", "not an Ed25519 key")
    try:
        data = base58.b58decode(did) + base58.b58decode(verkey[1:])
    except ValueError:
        raise PeerError("bad_key", "not an Ed25519 key") from None
    return normalise_verkey(encode_key(data))


def did_key_of(verkey: str) -> str:
    """Return the did:key of a verkey. PeerError `bad_key` if it cannot be read."""
    return f"did:key:z{encode_key(ED25519 + decode_key(verkey))}"


def sign_bytes(seed: bytes, data: bytes) -> bytes:
    """Return the Ed25519 signature, 64 bytes, by the key of a seed of 32 bytes."""
    return SigningKey(seed).sign(data).signature


def is_signed_by(verkey: str, data: bytes, signature: bytes) -> bool:
    """Return whether this is the Ed25519 signature of the data by the key.

    False too for a key that cannot be read: it has signed nothing.
    """
    try:
        VerifyKey(decode_key(verkey)).verify(data, signature)
    except (CryptoError, ValueError, PeerError):
        return False
    return True


def seal_box(message: bytes, nonce: bytes, to_verkey: str, seed: bytes) -> bytes:
    """Create an authenticated box (`crypto_box`), which proves its sender.

    PeerError `bad_key` if nothing can be encrypted to that verkey.
    """
    return Box(_private(seed), _public(to_verkey)).encrypt(message, nonce).ciphertext


def open_box(ciphertext: bytes, nonce: bytes, from_verkey: str, seed: bytes) -> bytes:
    """Open an authenticated box. Raises PeerError("cannot_open").

    And PeerError `bad_key` if the sender's verkey cannot be read or used.
    """
    try:
        return Box(_private(seed), _public(from_verkey)).decrypt(ciphertext, nonce)
    except (CryptoError, ValueError) as error:
        raise PeerError("cannot_open", "the envelope does not open") from error


def seal_anonymous_box(message: bytes, to_verkey: str) -> bytes:
    """Create a sealed box (`crypto_box_seal`), which has no known sender.

    PeerError `bad_key` if nothing can be encrypted to that verkey.
    """
    return SealedBox(_public(to_verkey)).encrypt(message)


def open_anonymous_box(ciphertext: bytes, seed: bytes) -> bytes:
    """Open a sealed box. Raises PeerError("cannot_open")."""
    try:
        return SealedBox(_private(seed)).decrypt(ciphertext)
    except (CryptoError, ValueError) as error:
        raise PeerError("cannot_open", "the envelope does not open") from error


def encrypt_aead(message: bytes, additional: bytes, nonce: bytes, key: bytes) -> bytes:
    """Encrypt with ChaCha20-Poly1305 (IETF, 12-byte nonce).

    Return the ciphertext, followed by a 16-byte tag.
    """
    return bindings.crypto_aead_chacha20poly1305_ietf_encrypt(
        message, additional, nonce, key
    )


def decrypt_aead(
    ciphertext: bytes, additional: bytes, nonce: bytes, key: bytes
) -> bytes:
    """Decrypt what encrypt_aead() returned. Raises PeerError("cannot_open")."""
    try:
        return bindings.crypto_aead_chacha20poly1305_ietf_decrypt(
            ciphertext, additional, nonce, key
        )
    except (CryptoError, ValueError, TypeError) as error:
        raise PeerError("cannot_open", "the envelope does not open") from error


def _private(seed: bytes) -> PrivateKey:
    return SigningKey(seed).to_curve25519_private_key()


# Public keys only are remembered, and only those that could be read.
@lru_cache(maxsize=10_000)
def _public(verkey: str) -> PublicKey:
    try:
        return VerifyKey(decode_key(verkey)).to_curve25519_public_key()
    except (CryptoError, RuntimeError) as error:
        raise PeerError("bad_key", "not an Ed25519 key") from error
