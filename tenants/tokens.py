"""The form of tokens and keys: `<prefix>_<32 base62 characters><6 of checksum>`.

The prefix names the kind for people and secret scanners; the CRC-32 lets garbage be refused without
a look into the database. 32 base62 characters are 190 random bits.
"""

import secrets
import string
import zlib

PREFIXES = {"access_token": "agt", "subscription_key": "ags", "provider_key": "agp"}
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECK_LENGTH = 32, 6


def generate(prefix: str) -> str:
    body = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return f"{prefix}_{body}{checksum(prefix, body)}"


def is_well_formed(secret: str, prefix: str) -> bool:
    start = f"{prefix}_"
    if not secret.startswith(start) or not secret.isascii():
        return False
    rest = secret[len(start) :]
    body, check = rest[:RANDOM_LENGTH], rest[RANDOM_LENGTH:]
    return len(rest) == RANDOM_LENGTH + CHECK_LENGTH and check == checksum(prefix, body)


def hint(secret: str) -> str:
    """What may be shown later: prefix and the first four random characters."""
    return secret[:8]


def checksum(prefix: str, body: str) -> str:
    number, digits = zlib.crc32(f"{prefix}_{body}".encode()), ""
    for _ in range(CHECK_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
