"""Identify the caller of a request, for rate limits and the fair use of threads."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from threading import Lock

from django.conf import settings

ADDRESS_WITH_PORT = re.compile(r"^(?:\[([^]]*)\](?::\d+)?|([\d.]+):\d+)$")
MAX_CALLERS = 10_000

_callers: "OrderedDict[bytes, str]" = OrderedDict()
_lock = Lock()


def client_address(meta: Mapping[str, object]) -> str:
    """Return the IP address of the client; for IPv6, its /64 network.

    Without proxies it is the peer of the socket. Behind TRUSTED_PROXIES it is the
    address that the outermost of them reported: earlier entries of X-Forwarded-For may
    be forged. A port, which some proxies append, is dropped.
    """
    peer = str(meta.get("REMOTE_ADDR", ""))
    reported = peer
    if settings.TRUSTED_PROXIES:
        entries = str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",")
        reported = entries[-settings.TRUSTED_PROXIES :][0]
    return network_of(reported.strip()) or peer


@lru_cache(maxsize=MAX_CALLERS)
def network_of(reported: str) -> str | None:
    """Return the IP address or, for IPv6, its /64 network; else None."""
    try:
        address = ip_address(ADDRESS_WITH_PORT.sub(r"\1\2", reported))
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    return str(
        address if address.version == 4 else ip_network((address, 64), strict=False)
    )


def site_of(address: str) -> str:
    """Return what client_address() gives; for IPv6, the /48 network around it.

    Whoever wants many addresses gets so many.
    """
    if not address.endswith("/64"):
        return address
    return str(ip_network(address).supernet(new_prefix=48))


def remember_caller(authorization: str, caller: str) -> None:
    """Remember the owner of a credential that was accepted, for `known_caller`.

    Only a digest is stored, in this process, for the last MAX_CALLERS callers.
    """
    digest = _token_digest(authorization)
    with _lock:
        _callers[digest] = caller
        _callers.move_to_end(digest)
        while len(_callers) > MAX_CALLERS:
            _callers.popitem(last=False)


def known_caller(authorization: str) -> str | None:
    """The organization or provider account that used this credential before, or None.

    Never use it for authorization: the credential may have been revoked since.
    """
    return _callers.get(_token_digest(authorization)) if authorization else None


def _token_digest(authorization: str) -> bytes:
    return hashlib.sha256(authorization.encode("utf-8", "surrogateescape")).digest()
