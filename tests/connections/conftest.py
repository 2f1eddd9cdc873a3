import pytest

from tests.support.outside_agent import NEW, OLD, Agent
from tests.support.outside_exchanges import connects_without_endpoint


@pytest.fixture
def alice(faber):
    return faber.hosts("Alice")


@pytest.fixture
def met(faber, alice):
    """Alice, who is connected with Faber."""
    alice.meets(faber)
    return alice


@pytest.fixture
def row(faber, phone):
    """Faber's connection with the phone."""
    return phone.connects(faber)


@pytest.fixture
def pocket(db):
    """A phone without an endpoint."""
    return Agent()


@pytest.fixture(params=[NEW, OLD], ids=["didcomm.org", "did:sov"])
def any_pocket(request, db):
    """A phone without an endpoint, with either prefix of message types."""
    return Agent(request.param)


@pytest.fixture
def pocket_row(faber, pocket):
    """Faber's connection with a phone without an endpoint."""
    return connects_without_endpoint(pocket, faber)
