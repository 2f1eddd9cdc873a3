from contextlib import contextmanager

import pytest

from connections.models import Connection
from tests.support import queues
from tests.support.outside_agent import NEW, OLD, Agent
from tests.support.outside_exchanges import connects_without_endpoint
from tests.support.steps import step


@step
def holder(faber):
    return faber.hosts("Alice")


@pytest.fixture
def alice(holder):
    return holder


@step
def met(faber, holder):
    """Alice, who is connected with Faber."""
    holder.meets(faber)
    return holder


@pytest.fixture
def row(peer):
    """Faber's connection with the phone."""
    return Connection.objects.get(their_key=peer.verkey)


@pytest.fixture
def pocket(db):
    """A phone without an endpoint."""
    return Agent()


@pytest.fixture(params=[NEW, OLD], ids=["didcomm.org", "did:sov"])
def any_pocket(request, db):
    """A phone without an endpoint, with either prefix of message types."""
    return Agent(request.param)


@step
def known_pocket(faber):
    pocket = Agent()
    connects_without_endpoint(pocket, faber)
    return pocket


@pytest.fixture
def pocket_row(known_pocket, pocket):
    """Faber's connection with a phone without an endpoint."""
    pocket.becomes(known_pocket)
    return Connection.objects.get(their_key=pocket.verkey)


@step
def badge(faber):
    return faber.defines("name", "level")


@pytest.fixture
def crashed(monkeypatch):
    """A block after whose commits the process is killed. Yields the rows left."""

    @contextmanager
    def block():
        with monkeypatch.context() as patch:
            yield queues.crash_before_the_drain(patch)

    return block
