"""A tails server for ACA-Py, which stores files in memory and serves them to all."""

from email.parser import BytesParser
from email.policy import HTTP

from tests.support.http_servers import Call, Server

BINARY = "application/octet-stream"


class Tails:
    """`files`: the bytes by path, as `/<registry id>`."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.server = Server(self.respond)
        self.url, self.stop = self.server.url, self.server.stop

    def respond(self, call: Call) -> None:
        if call.command == "PUT":
            tails = tails_of(call.headers["Content-Type"], read_body(call))
            self.files[call.path] = tails
            return call.answer(200, call.path.encode(), Content_Type=BINARY)
        found = self.files.get(call.path)
        call.answer(404 if found is None else 200, found or b"", Content_Type=BINARY)


def read_body(request: Call) -> bytes:
    if "Content-Length" in request.headers:
        return request.rfile.read(int(request.headers["Content-Length"]))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


def tails_of(content_type: str, body: bytes) -> bytes:
    """The part of a form that is called `tails`."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + body)
    parts = {
        part.get_param("name", header="Content-Disposition"): part
        for part in form.walk()
    }
    return parts["tails"].get_payload(decode=True)
