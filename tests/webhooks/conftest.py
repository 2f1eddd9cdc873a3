import pytest

from core.net import http
from tests.support.webhook_receiver import receiving, send_example


@pytest.fixture
def loopback(settings):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    settings.WEBHOOK_THREADS = 4


@pytest.fixture
def receiver(loopback):
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def impatient(receiver, monkeypatch):
    """Each call has waited in full as soon as the silent receiver has read it.

    Returns how long they seem to have waited.
    """
    read_head, waited = http.read_head, []

    def read(connection, deadline):
        if receiver.silent:
            assert receiver.heard.acquire(timeout=20)
            waited.append(deadline.seconds)
            deadline.started -= deadline.seconds
        return read_head(connection, deadline)

    monkeypatch.setattr(http, "read_head", read)
    return waited


@pytest.fixture
def registers(faber, receiver):
    """Registers the receiver at Faber's; `messageTypes` and the like may be given."""

    def register(**body):
        return faber.post(
            "/webhooks", {"url": receiver.url, "type": "Notification"} | body
        )

    return register


@pytest.fixture
def examples(faber, loopback):
    """Sends so many examples to a webhook, without calling it yet."""

    def send(webhook, count=1, sender=faber):
        return [send_example(sender, webhook) for _ in range(count)]

    return send
