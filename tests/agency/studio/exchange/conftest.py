"""Faber College with its API, and Fay, who owns it, in the studio."""

import pytest

from tests.support.steps import step
from tests.support.walks import Walk


@pytest.fixture
def faber(transactional_db, faber):
    return faber


@step
def holder(faber):
    return faber.hosts("Alice")


@step
def badge(faber):
    return faber.defines("name", "level")


@pytest.fixture
def walk(faber, holder, badge, monkeypatch):
    return Walk(faber, monkeypatch)


def url_of(row):
    return f"/studio/organizations/{row.tenant_id}/{row.OBJECT_TYPE}s/{row.pk}"


def text(response):
    assert response.status_code == 200, response.status_code
    return response.text
