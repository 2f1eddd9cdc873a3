import pytest

from tests.connections import outside


@pytest.fixture(params=[outside.NEW, outside.OLD], ids=["didcomm.org", "did:sov"])
def any_phone(request, settings):
    """A phone with an agent of its own, with either prefix of message types."""
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with outside.listening(outside.Agent(request.param)) as agent:
        yield agent


@pytest.fixture
def phone(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with outside.listening(outside.Agent()) as agent:
        yield agent
