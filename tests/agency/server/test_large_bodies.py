"""What waits of one caller has a bound in bytes too."""

import asyncio
import threading
from unittest.mock import AsyncMock

from agency.server.web import DjangoResponse, RequestRefused, WebApplication

BODY = b"x" * 9_000_000
SCOPE = {
    "type": "http",
    "method": "POST",
    "http_version": "1.1",
    "path": "/credentials/bulk",
    "headers": [(b"content-length", str(len(BODY)).encode())],
}


def send_many(*addresses):
    """Send a large body from each at once. Return how each was answered."""
    may_end = threading.Event()

    def handle(scope, body):
        may_end.wait(10)
        return DjangoResponse(200, [], b"", None, lambda: None)

    async def send_one(web, address):
        messages = iter([{"type": "http.request", "body": BODY}])
        stay = asyncio.Event()

        async def receive():
            return next(messages, None) or await stay.wait()

        try:
            scope = SCOPE | {"client": (address, 1)}
            await web._respond(scope, receive, AsyncMock())
        except RequestRefused as refusal:
            return refusal.code
        return "done"

    async def run():
        web = WebApplication()
        web.django.handle_request = handle
        asyncio.get_running_loop().call_later(1, may_end.set)
        found = await asyncio.gather(*(send_one(web, one) for one in addresses))
        assert not web.large_bytes
        return found

    return asyncio.run(run())


def test_large_bodies_of_a_caller_are_refused_beyond_its_share():
    answers = send_many(*["10.0.0.1"] * 9, "10.0.0.2")
    assert answers == ["done"] * 7 + ["too_many_at_once"] * 2 + ["done"]
