"""A tails server for ACA-Py, which stores files in memory and serves them to all."""

from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Tails:
    """`files`: the bytes by path, as `/<registry id>`."""

    def __init__(self) -> None:
        files = self.files = {}  # type: dict[str, bytes]

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                files[self.path] = tails_of(
                    self.headers["Content-Type"], read_body(self)
                )
                self.answer(200, self.path.encode())

            def do_GET(self):
                found = files.get(self.path)
                self.answer(404 if found is None else 200, found or b"")

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        options = {"poll_interval": 0.05}
        self.thread = Thread(
            target=self.server.serve_forever, kwargs=options, daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def read_body(request: BaseHTTPRequestHandler) -> bytes:
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
