"""A receiver of webhooks that is as fast as can be; below /hang it never answers.

Below /after/N it answers after N milliseconds.

python -m bench.receiver [FOLDER]
    prints its port; ends with its standard input. FOLDER: answer with TLS, with the
    certificate in certificate.pem and its key in key.pem.
"""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"


@contextmanager
def receiving(folder: Path | None = None) -> Iterator[str]:
    """Run one while the block runs. Yield its URL."""
    command = [sys.executable, "-m", "bench.receiver"]
    url = "http://127.0.0.1"
    if folder:
        command.append(str(folder))
        url = "https://localhost"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield f"{url}:{int(process.stdout.readline())}"
        finally:
            process.kill()


class Receiver(asyncio.Protocol):
    """Answers each request of a connection, and closes it if the request asks."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        lowered = head.lower()
        length = lowered.partition(b"content-length:")[2].split(b"\r\n")[0]
        if not end or len(body) < int(length):
            return
        self.received = b""
        if b"/hang" in head.split(b"\r\n")[0]:
            return
        _, after, rest = head.split(b" ")[1].partition(b"/after/")
        delay = int(rest.split(b"/")[0]) / 1000 if after else 0.0
        is_last = b"\r\nconnection: close" in lowered
        if delay:
            asyncio.get_running_loop().call_later(delay, self.answer, is_last)
        else:
            self.answer(is_last)

    def answer(self, is_last: bool) -> None:
        self.transport.write(OK)
        if is_last:
            self.transport.close()


async def serve(folder: str | None) -> None:
    context = None
    if folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")
    server = await asyncio.get_running_loop().create_server(
        Receiver, "127.0.0.1", 0, ssl=context, backlog=256
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:2] or [None]))
