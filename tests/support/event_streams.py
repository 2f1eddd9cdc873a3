"""The server of event streams in its own process, and its listeners."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import requests
from django.conf import settings
from django.db import connection

from agency.ops.healthcheck import probe_health
from tenants import vault
from tests.support.paths import ROOT
from tests.support.processes import database_of_test, eventually

SERVERS = {
    "web": "--interface asginl --loop asyncio --no-ws agency.web:application",
    "stream": (
        "--interface asgi --loop asyncio --workers-kill-timeout 5 --backpressure 512 "
        "agency.asgi:application"
    ),
}


class Sent(NamedTuple):
    """One message of a stream."""

    id: str
    body: dict[str, Any]
    event: str = ""


@contextlib.contextmanager
def serving(name: str, port: int, **settings: str) -> Iterator[str]:
    """Run a server on the test's database. Both use the same system data key."""
    vault.forget_keys()
    vault.data_key(None)
    given = {"DATABASE_URL": database_of_test()}
    given |= {"ALLOWED_HOSTS": "*", "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "granian", "--port", str(port)]
    command += ["--log-level", "warning", *SERVERS[name].split()]
    server = subprocess.Popen(command, env=os.environ | given | settings, cwd=ROOT)
    try:
        address = f"http://127.0.0.1:{port}"
        eventually(lambda: server.poll() is not None or probe_health(port, address))
        assert server.poll() is None
        yield address
    finally:
        server.terminate()
        server.wait(30)


class Stream:
    """A listener of one stream. `last`: the cursor for a reconnect."""

    def __init__(self, organization: Any, url: str, query: str = "", last: str = ""):
        headers = organization.headers | ({"Last-Event-ID": last} if last else {})
        address = f"{url}/events/stream?{query}"
        self.answer = requests.get(address, headers=headers, stream=True, timeout=20)
        self.lines = self.answer.iter_lines(chunk_size=1, decode_unicode=True)
        self.last = last

    def until_place(self) -> list[Sent]:
        """Return the messages before the next heartbeat: a cursor without an event."""
        found = []
        while sent := self.next():
            found.append(sent)
        return found

    def next(self) -> Sent | None:
        """Return the next message, or None for a cursor alone.

        Raises StopIteration at the end of the stream.
        """
        fields: dict[str, str] = {}
        while not {"id", "event"} & fields.keys():
            fields = {}
            while line := next(self.lines):
                name, _, value = line.partition(": ")
                fields[name] = value
        self.last = fields.get("id", self.last)
        if "data" not in fields:
            return None
        return Sent(self.last, json.loads(fields["data"]), fields.get("event", ""))

    def take(self, count: int) -> list[str]:
        """Return the object ids of the next `count` events."""
        found: list[str] = []
        while len(found) < count:
            if sent := self.next():
                found.append(sent.body["object_id"])
        return found

    def close(self) -> None:
        self.answer.close()

    def soon(self) -> Sent:
        """Return the next message. It must come before the second heartbeat."""
        sent = self.next() or self.next()
        assert sent, "two heartbeats came first"
        return sent


def database_connections() -> int:
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    with connection.cursor() as cursor:
        cursor.execute(count, [settings.DATABASES["default"]["NAME"]])
        return cursor.fetchone()[0]
