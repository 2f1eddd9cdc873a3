"""A receiver of webhooks that is as fast as can be; below /hang it never answers.

python -m bench.receiver        prints its port; ends with its standard input
"""

import asyncio
import subprocess
import sys
from contextlib import contextmanager

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK"


@contextmanager
def receiving():
    """Its URL, while the block runs."""
    command = [sys.executable, "-m", "bench.receiver"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def meet(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    await reader.readexactly(int(length))
    if b"/hang" in head.split(b"\r\n")[0]:
        await reader.read()
    else:
        writer.write(OK)
        await writer.drain()
    writer.close()


async def serve():
    server = await asyncio.start_server(meet, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
