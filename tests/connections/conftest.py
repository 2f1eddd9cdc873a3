import pytest

from tests.connections import outside

EITHER = [
    pytest.param(outside.NEW, id="didcomm.org"),
    pytest.param(outside.OLD, id="did:sov", marks=pytest.mark.slow),
]


@pytest.fixture(params=EITHER)
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
