"""Helpers for tests of HTML pages: forms, secrets on a page."""

import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

SECRET = re.compile(r"\bag[tsp]_[0-9A-Za-z]{38}\b")


@pytest.fixture(autouse=True)
def pages():
    """Rate limits begin anew."""
    cache.clear()


def secrets_on(response):
    """The keys that a page shows, in its order, each once."""
    return list(dict.fromkeys(SECRET.findall(response.content.decode())))


class Browser(Client):
    """Sends forms as the pages do, each with a token of its own."""

    def send(self, path, **fields):
        return self.post(path, {"form_token": str(uuid4())} | fields)
