"""A receiver of webhooks on this machine, behind TLS."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.http_endpoints import certificate
from tests.support.http_servers import Call, Server


class Receiver(Server):
    """Keeps the headers and the body of each call, and answers 200."""

    def __init__(self, folder: Path) -> None:
        self.certificate, context = certificate(folder, "localhost")
        self.calls: list[tuple[dict[str, str], bytes]] = []
        super().__init__(self.receive, context)
        self.url = f"https://localhost:{self.server_port}/hooks"

    def receive(self, call: Call) -> None:
        self.calls.append((dict(call.headers), call.read()))
        call.answer()


@contextlib.contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    receiver = Receiver(folder)
    try:
        yield receiver
    finally:
        receiver.stop()
