"""The format of tokens and keys: `<prefix>_<32 base62 characters><6 of checksum>`.

The prefix shows the kind to people and secret scanners. With the checksum (CRC-32),
other text is refused without a query. 32 base62 characters are 190 random bits, which
nobody can guess: so their SHA-256 is kept, and it needs no key.
"""

import hashlib
import secrets
import string
import zlib

PREFIXES = {"access_token": "agt", "subscription_key": "ags", "provider_key": "agp"}
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 32
CHECKSUM_LENGTH = 6
HINT_LENGTH = 8  # the prefix and the first four random characters


def generate_token(prefix: str) -> str:
    """Return a new random token with this prefix, in the format of this module."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return f"{prefix}_{body}{checksum_of(prefix, body)}"


def is_well_formed(secret: str, prefix: str) -> bool:
    """Return whether the text is a token with this prefix and the right checksum.

    It may still be one that nobody has.
    """
    start = f"{prefix}_"
    if not secret.startswith(start) or not secret.isascii():
        return False
    rest = secret[len(start) :]
    if len(rest) != RANDOM_LENGTH + CHECKSUM_LENGTH:
        return False
    body = rest[:RANDOM_LENGTH]
    return rest[RANDOM_LENGTH:] == checksum_of(prefix, body)


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 (32 bytes), which is stored and by which a key is found."""
    return hashlib.sha256(secret.encode()).digest()


def hint_of(secret: str) -> str:
    """Return the beginning of a key, by which people recognize it.

    It is stored in clear text and shown later.
    """
    return secret[:HINT_LENGTH]


def checksum_of(prefix: str, body: str) -> str:
    number = zlib.crc32(f"{prefix}_{body}".encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
