"""What waits of one caller has a bound in bytes too."""

import asyncio
import threading
from unittest.mock import AsyncMock

from agency.server.web import DjangoResponse, RequestRefused, WebApplication
from tests.support.coroutines import until

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
        tasks = [asyncio.create_task(send_one(web, one)) for one in addresses]
        refused = lambda: sum(task.done() for task in tasks)  # noqa: E731
        taken = lambda: web.large_bytes.total() // len(BODY)  # noqa: E731
        await until(lambda: refused() + taken() == len(tasks))
        may_end.set()
        found = await asyncio.gather(*tasks)
        assert not web.large_bytes
        return found

    return asyncio.run(run())


def test_large_bodies_of_a_caller_are_refused_beyond_its_share():
    answers = send_many(*["10.0.0.1"] * 9, "10.0.0.2")
    assert answers == ["done"] * 7 + ["too_many_at_once"] * 2 + ["done"]
