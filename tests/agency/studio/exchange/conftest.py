"""Faber College with its API, and Fay, who owns it, in the studio."""

import pytest

from tests.agency.studio.conftest import browser, fay, stranger, viewer
from tests.support.people import Organization
from tests.support.walks import Walk

__all__ = ["browser", "fay", "stranger", "viewer"]


@pytest.fixture
def faber(transactional_db, stored_keys, fay):
    return Organization("Faber College", owner=fay)


@pytest.fixture
def college(faber):
    return faber.made


@pytest.fixture
def walk(faber, monkeypatch):
    return Walk(faber, monkeypatch)


def url_of(row):
    return f"/studio/organizations/{row.tenant_id}/{row.OBJECT_TYPE}s/{row.pk}"


def text(response):
    assert response.status_code == 200, response.status_code
    return response.text
