"""The client of `listen`, with a server that breaks off in the middle of a response."""

import http.server
import threading

import pytest

from agency.devtools.listen.client import AgencyClient, Unreachable

LINK = '<http://agency.example/events?after=7>; rel="next"'


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Link", LINK)
        self.send_header("Content-Length", str(self.server.promised))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def answers():
    """Return a client of a server that sends `body`, and promises so many bytes."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def answer(body, promised=None):
            server.body, server.promised = body, promised or len(body)
            return AgencyClient(f"http://127.0.0.1:{server.server_port}", "a", "b")

        yield answer
        server.shutdown()


def test_a_whole_response_is_read(answers):
    assert answers(b'[{"tenantId": "4711"}]').tenant_id() == "4711"
    assert answers(b"[]").read_page("5") == ([], "7")


@pytest.mark.parametrize("body, promised", [(b'[{"ten', 900), (b"<html>", None)])
def test_a_response_that_breaks_off_is_asked_for_again(answers, body, promised):
    with pytest.raises(Unreachable):
        answers(body, promised).tenant_id()
    with pytest.raises(Unreachable):
        answers(body, promised).read_page("5")
