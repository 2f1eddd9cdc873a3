"""The log of API calls in tests: written when a test says so, by no thread."""

from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from tenants import request_log
from tenants.models import LoggedRequest

# What a test gets: it writes what was noted and returns the rows, oldest first.
Written = Callable[[], list[LoggedRequest]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Note the calls of the test, as a web process does."""
    monkeypatch.setattr(request_log, "_writer", Thread())
    monkeypatch.setattr(request_log, "buffer", request_log.Buffer())

    def write() -> list[LoggedRequest]:
        request_log.write_noted()
        return list(LoggedRequest.objects.order_by("pk"))

    yield write
