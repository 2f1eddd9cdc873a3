"""Streamed bodies of one caller leave threads to the others."""

import asyncio
import threading

from agency.server.web import DjangoResponse, WebApplication
from tests.support.coroutines import in_a_loop, until


def sending(web, chunks, receive, caller):
    response = DjangoResponse(200, [], b"", iter(chunks), lambda: None)
    return asyncio.create_task(web._send_response(response, ignore, receive, caller))


async def ignore(message):
    pass


async def stay():
    """The messages of a client that keeps its connection open."""
    await asyncio.Event().wait()


@in_a_loop
async def test_each_part_takes_its_turn_among_the_callers():
    part_is_read = threading.Semaphore(0)

    def slow_chunks():
        while part_is_read.acquire():
            yield b"part"

    web = WebApplication()
    busy = [
        sending(web, slow_chunks(), stay, "busy") for _ in range(2 * web.quick.free)
    ]
    await until(lambda: len(web.quick.waiting) == web.quick.fair_share * 2)
    other = asyncio.create_task(web.quick.run("other", lambda: "done", stay))
    await until(lambda: "other" in web.quick.waiting_by)
    part_is_read.release()
    try:
        assert await asyncio.wait_for(asyncio.shield(other), 5) == "done"
    finally:
        for task in busy:
            task.cancel()
        part_is_read.release(1000)


@in_a_loop
async def test_nothing_more_is_read_for_a_client_that_is_gone():
    read = []

    async def leave():
        return {"type": "http.disconnect"}

    chunks = (read.append(number) or b"part" for number in range(1000))
    task = sending(WebApplication(), chunks, leave, "caller")
    await asyncio.gather(task, return_exceptions=True)
    assert len(read) < 10
