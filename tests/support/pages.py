"""Helpers for tests of HTML pages: forms, and secrets on a page."""

import re
from uuid import uuid4

from tests.support.people import Caller

SECRET = re.compile(r"\bag[tsp]_[0-9A-Za-z]{38}\b")


def secrets_on(response):
    """Return the keys on a page in their order, each once."""
    return list(dict.fromkeys(SECRET.findall(response.content.decode())))


class Browser(Caller):
    """A client that sends forms as the pages do, each with a new token."""

    def send(self, path, **fields):
        return self.post(path, {"form_token": str(uuid4())} | fields)
