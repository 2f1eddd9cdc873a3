import pytest

from tests.support.webhook_receiver import receiving


@pytest.fixture
def loopback(settings):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    settings.WEBHOOK_THREADS = 4


@pytest.fixture
def receiver(loopback):
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def registers(faber, receiver):
    """Registers the receiver at Faber's; `messageTypes` and the like may be given."""

    def register(**body):
        return faber.post(
            "/webhooks", {"url": receiver.url, "type": "Notification"} | body
        )

    return register
