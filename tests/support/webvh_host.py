"""A host that serves did:webvh over TLS on loopback, under a made-up name at port 443.

The name leads to the port of the server below core/net/http.py, as a name system would.
"""

import json
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.net import addresses
from credentials.ledgers.webvh import reading
from tests.support import webvh
from tests.support.http_endpoints import certificate
from tests.support.http_servers import Call, Server

HOST = "issuer.example.org"


class Host:
    """pages: path -> body, or what answers the call. asked: how often each path was."""

    def __init__(self, folder: Path, settings: Any, monkeypatch: Any) -> None:
        path, context = certificate(folder, HOST)
        settings.OUTGOING_CA_FILE = str(path)
        settings.OUTGOING_ALLOW_LOOPBACK = True
        self.pages: dict[str, bytes | Callable[[Call], None]] = {}
        self.asked: Counter[str] = Counter()
        self.addresses = ["127.0.0.1"]
        self.server = Server(self.respond, context)
        reading.silent_until.clear()
        look_up = addresses.look_up

        def lead(host: str, port: int, flags: int = 0) -> list[Any]:
            if host != HOST:
                return look_up(host, port, flags)
            if flags:  # it is no address
                raise socket.gaierror
            leads_to = self.server.server_port if port == 443 else port
            return [(socket.AF_INET, (one, leads_to)) for one in self.addresses]

        monkeypatch.setattr(addresses, "look_up", lead)

    def respond(self, call: Call) -> None:
        self.asked[call.path] += 1
        page = self.pages.get(call.path)
        if page is None:
            call.answer(404)
        elif isinstance(page, bytes):
            call.answer(200, page, Content_Type="application/json")
        else:
            page(call)

    def shows_vectors(self) -> None:
        """Serve the DID of the vectors, and its resources."""
        vectors = webvh.vectors()
        self.pages[path_of(vectors["did"])] = webvh.to_bytes(vectors["log"])
        for resource in vectors["resources"]:
            self.pages[path_of(resource["id"])] = json.dumps(resource).encode()


def path_of(name: str) -> str:
    """The path of a DID's log, or of a resource."""
    did, slash, rest = name.partition("/")
    return f"/{'/'.join(did.split(':')[4:])}{slash or '/'}{rest or 'did.jsonl'}"
