"""Where an outgoing call may go: what URLs are read, and which addresses their hosts may have."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import idna
from django.conf import settings

from agency.core.errors import Invalid

CHECK = 2.0  # seconds, for the name at registration
PORTS = {"http": 80, "https": 443}
HOST = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,252}|[0-9a-f:.]*:[0-9a-f:.]*")
AS_IT_IS = "!$%&'()*+,/:;=?@[]~"  # in paths and queries

GLOBAL_UNICAST = ip_network(
    "2000::/3"
)  # so neither mapped, NAT64, site-local nor multicast
NOT_PUBLIC = [
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
LOOKUPS = ThreadPoolExecutor(
    64, "lookup"
)  # one that hangs keeps its thread until it gives up

Place = tuple[int, tuple]  # address family and socket address


class Refused(ValueError):
    """The host has an address that is not called."""


class Target(NamedTuple):
    scheme: str
    host: str  # ASCII, without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def check(url: str, field: str) -> None:
    """For registration. 400 for an address that can never be called; `field` is at fault.

    A name that cannot be looked up now passes: each call checks again.
    """
    try:
        target = parse(url)
        allowed(target.host, target.port, CHECK)
    except ValueError as error:
        message = f"This address cannot be called: {error}."
        raise Invalid("address_refused", message, {field: [message]}) from None
    except OSError:
        pass


def parse(url: str) -> Target:
    """ValueError says what is wrong with the URL."""
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("it holds a character that does not belong there")
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError("it has no http or https scheme, or no host")
    if "@" in parts.netloc:
        raise ValueError("leave the user name and password out")
    host = parts.hostname
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode()
    if not HOST.fullmatch(host):
        raise ValueError("it has no usable host name")
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    if port < 1024 and port not in PORTS.values():
        raise ValueError("the port is 80, 443 or one from 1024 on")
    query = f"?{parts.query}" if parts.query else ""
    return Target(
        parts.scheme, host, port, quote((parts.path or "/") + query, safe=AS_IT_IS)
    )


def allowed(host: str, port: int, seconds: float) -> list[Place]:
    """The places a host (ASCII, no brackets) has, if each of them may be called; else Refused.

    Connect to these, never to the name again: its next lookup may say something else. OSError when
    the name is unknown; its child TimeoutError after so many seconds.
    """
    places = resolve(host, port, seconds)
    if not all(is_allowed(ip_address(place[0])) for _, place in places):
        raise Refused("the host is, or has, an address that is not public")
    return places


def resolve(host: str, port: int, seconds: float) -> list[Place]:
    try:
        return look_up(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        lookup = LOOKUPS.submit(look_up, host, port)
    try:
        return lookup.result(seconds)
    finally:
        lookup.cancel()


def look_up(host: str, port: int, flags: int = 0) -> list[Place]:
    """In the resolver's order. As bytes, for Python would map a text to IDNA 2003 first."""
    found = socket.getaddrinfo(
        host.encode("ascii"), port, type=socket.SOCK_STREAM, flags=flags
    )
    return [(family, place) for family, _, _, _, place in found]


def is_allowed(address: IPv4Address | IPv6Address) -> bool:
    if address.is_loopback and not is_listed(address):
        return settings.OUTGOING_ALLOW_LOOPBACK
    return is_listed(address) or is_public(address)


def is_own(address: str) -> bool:
    """Whether the way to this IP address is the operator's own: this machine, or a listed network.

    Whoever could change what comes over it is inside already.
    """
    found = ip_address(address.partition("%")[0])
    return found.is_loopback or is_listed(found)


def is_listed(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in settings.OUTGOING_ALLOWED_NETWORKS)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.is_global and (address.version == 4 or address in GLOBAL_UNICAST)
