import pytest

from tests.support import walks


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)
