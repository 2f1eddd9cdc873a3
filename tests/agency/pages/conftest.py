"""Faber College with a few objects of each kind."""

import pytest

from tests.agency.pages.catalog import build_world
from tests.agency.studio.conftest import college, fay
from tests.support.pages import pages

__all__ = ["college", "fay", "pages"]


@pytest.fixture
def world(transactional_db, stored_keys, fay, college, client):
    return build_world(college, fay, client)
