"""Faber College with objects of each kind."""

import pytest

from tests.agency.pages.catalog import open_world


@pytest.fixture
def world(transactional_db, stored_keys):
    return open_world()


@pytest.fixture
def fay(world):
    return world.fay
