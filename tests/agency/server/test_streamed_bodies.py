"""Streamed bodies of one caller leave threads to the others."""

import asyncio
import threading

from agency.server.web import DjangoResponse, WebApplication


def response_of(chunks):
    return DjangoResponse(200, [], b"", iter(chunks), lambda: None)


async def ignore(message):
    pass


async def stay():
    """The messages of a client that keeps its connection open."""
    await asyncio.Event().wait()


def test_each_part_takes_its_turn_among_the_callers():
    part_is_read = threading.Semaphore(0)

    def slow_chunks():
        while part_is_read.acquire():
            yield b"part"

    async def run():
        web = WebApplication()
        busy = [
            asyncio.create_task(
                web._send_response(response_of(slow_chunks()), ignore, stay, "busy")
            )
            for _ in range(2 * web.quick.free)
        ]
        await asyncio.sleep(0.1)
        other = asyncio.create_task(web.quick.run("other", lambda: "done", stay))
        await asyncio.sleep(0.1)
        part_is_read.release()
        try:
            return await asyncio.wait_for(asyncio.shield(other), 5)
        finally:
            for task in busy:
                task.cancel()
            part_is_read.release(1000)

    assert asyncio.run(run()) == "done"


def test_nothing_more_is_read_for_a_client_that_is_gone():
    read = []

    async def leave():
        return {"type": "http.disconnect"}

    async def run():
        web = WebApplication()
        chunks = (read.append(number) or b"part" for number in range(1000))
        await asyncio.gather(
            web._send_response(response_of(chunks), ignore, leave, "caller"),
            return_exceptions=True,
        )

    asyncio.run(run())
    assert len(read) < 10
