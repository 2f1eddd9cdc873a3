import pytest

from tests.support import walks
from tests.support.steps import step


@step
def holder(faber):
    return faber.hosts("Alice")


@pytest.fixture
def walk(faber, holder, monkeypatch):
    return walks.Walk(faber, monkeypatch)


@step
def met(faber, holder):
    """Alice, who is connected with Faber."""
    holder.meets(faber)
    return holder


@step
def badge(faber):
    return faber.defines("name", "level")
