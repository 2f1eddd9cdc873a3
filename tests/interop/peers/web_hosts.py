"""Made-up hosts on loopback behind TLS: an Agency, and what Credo publishes.

DIDs of did:webvh name hosts without a port, so the names lead to the port of one server
below all programs: in Credo by an option, in the Agency by a `sitecustomize` module.
"""

import base64
import json
from pathlib import Path
from typing import Any

import requests

from tests.interop.peers.agency import Agency
from tests.support.http_endpoints import certificate
from tests.support.http_servers import Call, Server

AGENCY_HOST, CREDO_HOST = "agency.example.org", "credo.example.org"
LEADS = """import socket
look_up = socket.getaddrinfo
def lead(host, port, *rest, **named):
    name = host.decode() if isinstance(host, bytes) else host
    if name in {hosts} and not named.get("flags"):
        return look_up("127.0.0.1", {port}, *rest, **named)
    return look_up(host, port, *rest, **named)
socket.getaddrinfo = lead
"""


class Hosts:
    """pages: path -> JSON, a text, or a tails file in base64, of CREDO_HOST."""

    def __init__(self, folder: Path) -> None:
        path, context = certificate(folder, AGENCY_HOST, CREDO_HOST)
        self.authorities = str(path)
        self.pages: dict[str, Any] = {}
        self.agency: Agency | None = None
        self.server = Server(self.respond, context)
        hosts = [AGENCY_HOST, CREDO_HOST]
        self.leads = dict.fromkeys(hosts, self.server.server_port)
        code = LEADS.format(hosts=hosts, port=self.server.server_port)
        (folder / "sitecustomize.py").write_text(code)

    def respond(self, call: Call) -> None:
        if call.headers["Host"] == AGENCY_HOST and self.agency:
            answer = requests.request(
                call.command,
                f"http://127.0.0.1:{self.agency.port}{call.path}",
                data=call.read() if call.headers["Content-Length"] else None,
                headers=dict(call.headers),
                timeout=60,
                allow_redirects=False,
            )
            kind = answer.headers.get("Content-Type", "")
            call.answer(answer.status_code, answer.content, Content_Type=kind)
            return
        page = self.pages.get(call.path)
        if page is None:
            call.answer(404)
        elif call.path.startswith("/tails/"):
            call.answer(200, base64.b64decode(page))
        elif isinstance(page, str):
            call.answer(200, page.encode(), Content_Type="text/jsonl")
        else:
            body = json.dumps(page).encode()
            call.answer(200, body, Content_Type="application/json")
