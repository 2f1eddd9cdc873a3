"""Calls of ACA-Py to its controller.

Some facts, such as received texts, come in no other way.
"""

import json
from typing import Any

from tests.support.http_servers import Call, Server
from tests.support.processes import eventually


class Webhooks:
    """`received`: (topic, body) of each call, in the order of their arrival."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.server = Server(self.receive)
        self.url, self.stop = self.server.url, self.server.stop

    def receive(self, call: Call) -> None:
        topic = call.path.strip("/").rpartition("topic/")[2]
        self.received.append((topic, json.loads(call.read())))
        call.answer()

    def hears(self, topic: str, seconds: float = 40, **wanted: Any) -> dict[str, Any]:
        """The first call of this topic with these members, once it has arrived."""

        def look():
            fits = (
                b
                for t, b in self.received
                if t == topic and wanted.items() <= b.items()
            )
            return next(fits, None)

        return eventually(look, seconds)
