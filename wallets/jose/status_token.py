"""Token Status Lists (draft-ietf-oauth-status-list): a number for each credential.

A list is bytes, filled from the lowest bit of each byte. 0: valid, 1: invalid.
"""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from core.errors import PeerError
from core.text.bounded_json import JSON
from wallets.jose.signing import (
    Token,
    decode_base64url,
    encode_base64url,
    is_time,
    read_token,
    sign_token,
)

TYP = "statuslist+jwt"
MEDIA_TYPE = f"application/{TYP}"
VALID = 0
MAX_TOKEN = 1024 * 1024  # characters
MAX_LIST = 4 * 1024 * 1024  # bytes
WIDTHS = (1, 2, 4, 8)


def bad_list(why: str) -> PeerError:
    return PeerError("bad_status_list", f"The status list is not valid: {why}.")


class StatusList(NamedTuple):
    """token: its signer is checked by the caller. ttl: seconds, if it has them."""

    token: Token
    width: int
    data: bytes
    ttl: float | None

    def status_of(self, index: JSON) -> int:
        """Return the number at a place. PeerError `bad_status_list` if it has none."""
        return status_at(self.data, self.width, index)


def status_at(data: bytes, width: int, index: JSON) -> int:
    """Return the number at a place. PeerError `bad_status_list` if it has none."""
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise bad_list("the index is not a number")
    byte, shift = divmod(index * width, 8)
    if byte >= len(data):
        raise bad_list("it has no such index")
    return data[byte] >> shift & (1 << width) - 1


def with_bits(data: bytes, indices: Iterable[int]) -> bytes:
    """Return a list of one bit for each credential, with these set."""
    changed = bytearray(data)
    for index in indices:
        changed[index // 8] |= 1 << index % 8
    return bytes(changed)


def make_token(
    data: bytes, uri: str, times: dict[str, int], secret: bytes, x5c: list[str]
) -> str:
    """Sign a list of one bit for each credential. times: `iat`, `exp` and `ttl`."""
    listed = {"bits": 1, "lst": encode_base64url(zlib.compress(data, 9))}
    payload = {"sub": uri, **times, "status_list": listed}
    return sign_token(payload, secret, TYP, x5c=x5c)


def parse_token(text: str, uri: str, now: float) -> StatusList:
    """Read the list that `uri` answered, without checking who signed it.

    PeerError `bad_token`, `bad_status_list`: of another URI, expired, or too large.
    """
    token = read_token(text, TYP, MAX_TOKEN)
    payload = token.payload
    if payload.get("sub") != uri:
        raise bad_list("it is another one")
    expires = payload.get("exp", now + 1)
    ttl = payload.get("ttl")
    if not is_time(expires) or not is_time(payload.get("iat")):
        raise bad_list("its times are not numbers")
    if expires <= now:
        raise bad_list("it has expired")
    if ttl is not None and not is_time(ttl):
        raise bad_list("its times are not numbers")
    listed = payload.get("status_list")
    if not isinstance(listed, dict):
        raise bad_list("it has no list")
    width = listed.get("bits")
    if isinstance(width, bool) or width not in WIDTHS:
        raise bad_list("its bits are none of 1, 2, 4 and 8")
    return StatusList(token, width, _inflate(decode_base64url(listed.get("lst"))), ttl)


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_LIST + 1)
    except zlib.error:
        raise bad_list("it cannot be inflated") from None
    if len(inflated) > MAX_LIST or not inflater.eof or inflater.unused_data:
        raise bad_list("it is too large, or not complete")
    return inflated
