"""The number of SQL queries of each call of a cycle, in this process."""

from contextlib import contextmanager
from unittest import mock

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.story import Caller


class InProcess(Caller):
    """Calls the application without a server, so that its queries can be counted."""

    def __init__(self):
        super().__init__("")
        self.client = Client(
            headers=dict(self.session.headers), SERVER_NAME="127.0.0.1"
        )

    def call(self, method, path, json=None, data=None):
        given = (
            {"data": data}
            if data
            else {"data": json or {}, "content_type": "application/json"}
        )
        if method == "get":
            given = {}
        response = getattr(self.client, method)(path, **given)
        if response.status_code != 200:
            raise RuntimeError(f"{method} {path}: {response.content}")
        return response.json() if response.content else None


@contextmanager
def in_process():
    """A caller with a wallet and a definition."""
    with mock.patch("django.conf.settings.ALLOWED_HOSTS", ["*"]):
        yield InProcess().prepare()


def run():
    with in_process() as caller:
        caller.cycle()
        steps, total = caller.steps(), 0
        while True:
            with CaptureQueriesContext(connection) as captured:
                step = next(steps, None)
            if step is None:
                break
            total += len(captured)
            print(f"{step[0]:20} {len(captured):4} queries")
        print(f"{'a whole cycle':20} {total:4} queries")
