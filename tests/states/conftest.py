import pytest

from tests.support import walks
from tests.support.steps import Steps

faber_after = Steps()


@pytest.fixture
def faber(request, transactional_db, stored_keys):
    return faber_after(request)


@faber_after.fixture
def holder(faber):
    return faber.hosts("Alice")


@pytest.fixture
def walk(faber, holder, monkeypatch):
    return walks.Walk(faber, monkeypatch)


@faber_after.fixture
def met(faber, holder):
    """Alice, who is connected with Faber."""
    holder.meets(faber)
    return holder


@faber_after.fixture
def badge(faber):
    return faber.defines("name", "level")
