"""Who a request comes from, as far as sharing out threads and rates is concerned."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from threading import Lock

from django.conf import settings

WITH_PORT = re.compile(r"^(?:\[([^]]*)\](?::\d+)?|([\d.]+):\d+)$")
MAX_CALLERS = 10_000

_callers: "OrderedDict[bytes, str]" = OrderedDict()
_lock = Lock()


def client_address(meta: Mapping[str, object]) -> str:
    """The address of the client: the peer of the socket or, behind TRUSTED_PROXIES of ours, what
    the outermost of them reported. Anybody can write the entries of X-Forwarded-For before that.

    IPv6 addresses are cut to their /64 network. A port that some proxies append is dropped.
    """
    peer = str(meta.get("REMOTE_ADDR", ""))
    reported = peer
    if settings.TRUSTED_PROXIES:
        entries = str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",")
        reported = entries[-settings.TRUSTED_PROXIES :][0]
    try:
        address = ip_address(WITH_PORT.sub(r"\1\2", reported.strip()))
    except ValueError:
        return peer
    address = getattr(address, "ipv4_mapped", None) or address
    return str(
        address if address.version == 4 else ip_network((address, 64), strict=False)
    )


def remember_caller(authorization: str, caller: str) -> None:
    """Notes whose credential this is, once it was accepted, for `known_caller`.

    Only a digest is kept, in this process, for the MAX_CALLERS used last.
    """
    digest = _digest(authorization)
    with _lock:
        _callers[digest] = caller
        _callers.move_to_end(digest)
        while len(_callers) > MAX_CALLERS:
            _callers.popitem(last=False)


def known_caller(authorization: str) -> str | None:
    """The organization or provider account that this credential was accepted for before.

    Good for sharing out, never for authorization: the credential may have been revoked since.
    """
    return _callers.get(_digest(authorization)) if authorization else None


def _digest(authorization: str) -> bytes:
    return hashlib.sha256(authorization.encode("utf-8", "surrogateescape")).digest()
