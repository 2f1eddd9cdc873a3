"""Short links of other agents: the message itself, or a redirect to a long link."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from connections.didcomm import message
from connections.models import Connection
from connections.protocols import connections_1_0, out_of_band
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent


@contextmanager
def serving(pages):
    """Run a web server on loopback from `{path: (status, headers, body)}`.

    Yields its address.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = pages[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def invitations():
    party = Agent().party._replace(endpoint="https://shop.example")
    yield connections_1_0.build_invitation("Shop", "", party.verkey, party.endpoint)
    yield out_of_band.build_invitation("invitation-1", "Shop", "", party)


@pytest.fixture
def alice(alice, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    return alice


def test_a_short_link_of_another_agent_is_followed(alice):
    for name, invitation in zip(("c_i", "oob"), invitations(), strict=True):
        body = json.dumps(invitation).encode()
        long = f"/long?{name}={message.encode_url(invitation)}"
        pages = {
            "/i/json": (200, {"Content-Type": "application/json"}, body),
            "/i/moved": (302, {"Location": long}, b""),
            "/i/twice": (301, {"Location": "/i/moved"}, b""),
        }
        with serving(pages) as address:
            for path in pages:
                Connection.objects.all().delete()
                mine = alice.accepts_invitation(address + path)
                assert (mine["state"], mine["name"]) == ("Negotiating", "Shop")


def test_a_link_that_leads_nowhere_is_400(alice, settings, subtests):
    for page in (
        (200, {}, b"<html>"), (404, {}, b"{}"), (302, {"Location": "/i/a"}, b""),
        (302, {}, b""), (302, {"Location": "ftp://x"}, b""), (200, {}, b"[" * 300_000),
    ):  # fmt: skip
        with subtests.test(str(page)[:50]), serving({"/i/a": page}) as address:
            error = error_of(alice.accepts_invitation, f"{address}/i/a")
            assert_error(error, 400, "bad_invitation")
    settings.OUTGOING_ALLOW_LOOPBACK = False
    with serving({}) as address:
        error = error_of(alice.accepts_invitation, f"{address}/i/a")
    assert error.status == 400, "one into our own network is not called"
