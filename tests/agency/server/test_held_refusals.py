"""Agents that send too fast wait for their 429, and hold up nobody else."""

import asyncio

import pytest

from agency.server import web as server
from agency.server.web import DIDCOMM, DjangoResponse, WebApplication
from tests.support.coroutines import in_a_loop, until

HELD = server.MAX_HELD_PER_ADDRESS


async def answers(web, path, *addresses):
    """Ask once from each address. Return a task for each, answered or held."""

    async def ask(address):
        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(event):
            pass

        scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": path}
        scope |= {"headers": [], "client": (address, 1)}
        await web(scope, receive, send)

    tasks = [asyncio.create_task(ask(address)) for address in addresses]
    answered = lambda: sum(task.done() for task in tasks)  # noqa: E731
    await until(lambda: answered() + web.held.total() == len(tasks))
    return tasks


@pytest.fixture
def refuse(monkeypatch):
    """Make applications that answer each request with this status."""
    monkeypatch.setattr(server, "HELD_SECONDS", 60)

    def make(status=429):
        web = WebApplication()
        response = DjangoResponse(status, [], b"", None, close=bool)
        monkeypatch.setattr(web.django, "handle_request", lambda *_: response)
        return web

    return make


@pytest.mark.parametrize(
    ("path", "status", "is_held"),
    [(DIDCOMM, 429, True), (DIDCOMM, 202, False), ("/connections", 429, False)],
)
def test_only_refused_envelopes_wait(refuse, path, status, is_held):
    @in_a_loop
    async def look():
        [task] = await answers(refuse(status), path, "10.0.0.1")
        assert task.done() != is_held
        task.cancel()

    look()


def test_an_address_has_so_many_at_a_time_and_others_have_theirs(refuse):
    @in_a_loop
    async def look():
        web = refuse()
        tasks = await answers(web, DIDCOMM, *["10.0.0.1"] * (HELD + 2), "10.0.0.2")
        assert sum(task.done() for task in tasks) == 2 and not tasks[-1].done()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not web.held

    look()
