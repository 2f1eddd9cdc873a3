"""Clients that send one request again and again: `python -m bench.read_clients`.

A process of its own with one event loop and no Django, so that the product and not the
client is measured. Reads JSON from standard input: host, port, request, clients,
seconds. Prints the number of responses per second.
"""

import asyncio
import json
import sys
import time


async def measure(host, port, request, clients, seconds):
    await read_until(host, port, request, time.monotonic() + 1)  # warms up
    started = time.monotonic()
    counts = await asyncio.gather(
        *(read_until(host, port, request, started + seconds) for _ in range(clients))
    )
    return sum(counts) / (time.monotonic() - started)


async def read_until(host, port, request, end):
    """Return the number of responses until `end`. Raises RuntimeError unless 200."""
    reader, writer = await asyncio.open_connection(host, port)
    count = 0
    while time.monotonic() < end:
        writer.write(request.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        count += 1
    writer.close()
    return count


if __name__ == "__main__":
    print(asyncio.run(measure(**json.load(sys.stdin))))
