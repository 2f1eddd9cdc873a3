"""The URLs that outgoing calls may use, and the addresses that hosts may have."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import idna
from django.conf import settings

from core.errors import Invalid

# The time limit of the DNS lookup when a URL is registered.
REGISTRATION_LOOKUP_SECONDS = 2.0
DEFAULT_PORTS = {"http": 80, "https": 443}
# A host name or IPv4 address, or an IPv6 address.
HOST_PATTERN = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,252}|[0-9a-f:.]*:[0-9a-f:.]*")
# Characters of paths and queries that are sent unescaped.
SAFE_CHARACTERS = "!$%&'()*+,/:;=?@[]~"

# IPv6 outside of this network is mapped IPv4, NAT64, site-local or multicast.
GLOBAL_UNICAST = ip_network("2000::/3")
NON_PUBLIC_NETWORKS = [
    ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments; metadata of one cloud
        "192.88.99.0/24",  # 6to4 relays
        "168.63.129.16/32",  # a cloud's host, reached from its machines only
        "224.0.0.0/4",  # multicast
        "2001::/23",  # protocol assignments: Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries any IPv4 address
        "3fff::/20",  # documentation
    )
]
# getaddrinfo() cannot be cancelled: a lookup that hangs keeps its thread until it
# ends.
LOOKUP_POOL = ThreadPoolExecutor(64, "lookup")

SocketAddress = tuple[int, tuple]  # address family, and what connect() takes
Origin = tuple[str, str, int]  # scheme, host and port


class AddressRefused(ValueError):
    """An address of the host is not allowed for outgoing calls."""


class Target(NamedTuple):
    scheme: str
    host: str  # ASCII, without brackets
    port: int
    path: str  # with the query

    @property
    def origin(self) -> Origin:
        """Scheme, host and port, by which connections are kept."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"
        )


def check_url(url: str, field: str) -> None:
    """Check a URL when it is registered. Raises 400 `address_refused` for `field`.

    A name that cannot be looked up now passes, because each call checks it again.
    """
    try:
        target = parse_url(url)
        resolve_allowed(target.host, target.port, REGISTRATION_LOOKUP_SECONDS)
    except ValueError as error:
        message = f"This address cannot be called: {error}."
        raise Invalid("address_refused", message, {field: [message]}) from None
    except OSError:
        pass


def parse_url(url: str) -> Target:
    """Parse a URL for a call.

    Raises ValueError. Its message completes the sentence "cannot be called: …".
    """
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("it contains a space, a backslash or a control character")
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("it has no http or https scheme, or no host")
    if "@" in parts.netloc:
        raise ValueError("a user name or password in it is not allowed")
    host = parts.hostname
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode()
    if not HOST_PATTERN.fullmatch(host):
        raise ValueError("it has no usable host name")
    port = DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    if port < 1024 and port not in DEFAULT_PORTS.values():
        raise ValueError("ports below 1024 other than 80 and 443 are not allowed")
    query = f"?{parts.query}" if parts.query else ""
    return Target(
        parts.scheme,
        host,
        port,
        quote((parts.path or "/") + query, safe=SAFE_CHARACTERS),
    )


def resolve_allowed(host: str, port: int, seconds: float) -> list[SocketAddress]:
    """Return the addresses of a host (ASCII, no brackets), if all of them are allowed.

    Connect to these addresses, never to the name: the next lookup may return others.
    Raises AddressRefused, OSError if the name is unknown, TimeoutError after
    `seconds`.
    """
    candidates = resolve_host(host, port, seconds)
    if not all(is_allowed(ip_address(address[0])) for _, address in candidates):
        raise AddressRefused("the host is, or has, an address that is not public")
    return candidates


def resolve_host(host: str, port: int, seconds: float) -> list[SocketAddress]:
    try:
        return look_up(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        lookup = LOOKUP_POOL.submit(look_up, host, port)
    try:
        return lookup.result(seconds)
    finally:
        lookup.cancel()


def look_up(host: str, port: int, flags: int = 0) -> list[SocketAddress]:
    """Return the addresses in the order of the resolver.

    The name is passed as bytes, because Python would convert a str to IDNA 2003.
    """
    found = socket.getaddrinfo(
        host.encode("ascii"), port, type=socket.SOCK_STREAM, flags=flags
    )
    return [(family, address) for family, _, _, _, address in found]


def is_allowed(address: IPv4Address | IPv6Address) -> bool:
    if is_listed(address):  # a loopback address too, without OUTGOING_ALLOW_LOOPBACK
        return True
    if address.is_loopback:
        return settings.OUTGOING_ALLOW_LOOPBACK
    if any(address in network for network in NON_PUBLIC_NETWORKS):
        return False
    return address.is_global and (address.version == 4 or address in GLOBAL_UNICAST)


def is_in_own_network(address: str) -> bool:
    """Whether an IP address is on this machine or in OUTGOING_ALLOWED_NETWORKS.

    Plain HTTP to it can be altered only from inside the operator's own network.
    """
    found = ip_address(address.partition("%")[0])
    return found.is_loopback or is_listed(found)


def is_listed(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in settings.OUTGOING_ALLOWED_NETWORKS)
