"""Faber College with its API, and Fay, who owns it, in the studio."""

import pytest

from tests.agency.studio.conftest import FOUNDED, found_college
from tests.support.database import Template
from tests.support.walks import Walk


def prepare_walks():
    """Faber College with what all walks begin with, or most."""
    faber = found_college()
    faber.holder, faber.badge = faber.hosts("Alice"), faber.defines("name", "level")
    return faber


FOR_WALKS = Template(prepare_walks)


@pytest.fixture
def founded(request, transactional_db, stored_keys):
    return (FOR_WALKS if "walk" in request.fixturenames else FOUNDED)()


@pytest.fixture
def faber(founded):
    return founded


@pytest.fixture
def walk(faber, monkeypatch):
    return Walk(faber, monkeypatch)


def url_of(row):
    return f"/studio/organizations/{row.tenant_id}/{row.OBJECT_TYPE}s/{row.pk}"


def text(response):
    assert response.status_code == 200, response.status_code
    return response.text
