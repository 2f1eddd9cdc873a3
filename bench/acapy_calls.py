"""The cycle of bench/calls.py between two agents of ACA-Py, by their admin API.

The agents answer offers, requests and presentations by themselves, as
`--auto-respond-…` says. The issuer's webhooks tell when an exchange is finished, which
costs it less than being asked again and again.
"""

import asyncio
import json
from typing import Any, Protocol

from bench.calls import ADULT, SHOWN, VALUES, Call

HANDSHAKE = "https://didcomm.org/didexchange/1.1"
PREVIEW = "issue-credential/2.0/credential-preview"
SECONDS = 120  # for which a client waits for a webhook
# By the topic of a webhook: the member with the id of an exchange.
ID_NAMES = {
    "connections": "invitation_msg_id",
    "issue_credential_v2_0": "cred_ex_id",
    "present_proof_v2_0": "pres_ex_id",
}
FINAL = ("completed", "active", "done", "abandoned")


class Admin(Protocol):
    async def call(self, call: Call) -> Any: ...


class Webhooks:
    """A server of webhooks: it knows the exchanges that are finished."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.finished: dict[tuple[str, str], asyncio.Future[dict[str, Any]]] = {}
        self.server: asyncio.Task[asyncio.Server] | None = None

    async def start(self) -> None:
        """Start the server, unless it runs."""
        if not self.server:
            starting = asyncio.start_server(self.serve, "127.0.0.1", self.port)
            self.server = asyncio.create_task(starting)
        await self.server

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2]
                body = await reader.readexactly(int(length.split(b"\r\n")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.receive(path.rpartition("/topic/")[2].strip("/"), json.loads(body))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()  # the agent, or this process, ends

    def receive(self, topic: str, payload: dict[str, Any]) -> None:
        if topic in ID_NAMES and payload["state"] in FINAL:
            future = self.future(topic, payload[ID_NAMES[topic]])
            if not future.done():
                future.set_result(payload)

    def future(self, topic: str, exchange: str) -> "asyncio.Future[dict[str, Any]]":
        made = asyncio.get_running_loop().create_future()
        return self.finished.setdefault((topic, exchange), made)

    async def wait(self, topic: str, exchange: str) -> dict[str, Any]:
        """Return the payload with the final state of the exchange."""
        return await asyncio.wait_for(self.future(topic, exchange), SECONDS)


class AcapyPair:
    """An issuer that verifies too, and a holder, each with an agent of its own."""

    def __init__(
        self, issuer: Admin, holder: Admin, webhooks: Webhooks, definition: str
    ) -> None:
        self.issuer, self.holder = issuer, holder
        self.webhooks, self.definition = webhooks, definition

    async def cycle(self) -> None:
        """Connect, offer, accept, issue, ask, answer and read the verified proof."""
        await self.webhooks.start()
        connection = await self.connect()
        await self.issue(connection)
        await self.verify(connection)

    async def connect(self) -> str:
        """Return the issuer's id of a new connection."""
        body = {"handshake_protocols": [HANDSHAKE]}
        path = "/out-of-band/create-invitation?auto_accept=true"
        made = await self.issuer.call(Call("invite", "POST", path, body))
        path = "/out-of-band/receive-invitation?auto_accept=true"
        await self.holder.call(Call("connect", "POST", path, made["invitation"]))
        finished = await self.webhooks.wait("connections", made["invi_msg_id"])
        return finished["connection_id"]

    async def issue(self, connection: str) -> None:
        attributes = [{"name": name, "value": value} for name, value in VALUES.items()]
        preview = {"@type": PREVIEW, "attributes": attributes}
        body = {"connection_id": connection, "credential_preview": preview}
        body["filter"] = {"anoncreds": {"cred_def_id": self.definition}}
        call = Call("offer", "POST", "/issue-credential-2.0/send", body)
        offered = await self.issuer.call(call)
        topic = "issue_credential_v2_0"
        finished = await self.webhooks.wait(topic, offered["cred_ex_id"])
        if finished["state"] != "done":
            raise RuntimeError(finished)

    async def verify(self, connection: str) -> None:
        restrictions = [{"cred_def_id": self.definition}]
        shown = {name: {"name": name, "restrictions": restrictions} for name in SHOWN}
        predicate = {
            "name": ADULT["attributeName"],
            "p_type": ADULT["predicateType"],
            "p_value": ADULT["predicateValue"],
            "restrictions": restrictions,
        }
        proof = {"name": "Bench", "version": "1.0", "requested_attributes": shown}
        proof["requested_predicates"] = {"adult": predicate}
        body = {"connection_id": connection}
        body["presentation_request"] = {"anoncreds": proof}
        call = Call("ask", "POST", "/present-proof-2.0/send-request", body)
        asked = await self.issuer.call(call)
        await self.webhooks.wait("present_proof_v2_0", asked["pres_ex_id"])
        path = f"/present-proof-2.0/records/{asked['pres_ex_id']}"
        result = await self.issuer.call(Call("read the result", "GET", path))
        if result["verified"] != "true":
            raise RuntimeError(f"not valid: {result}")
