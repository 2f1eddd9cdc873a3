import pytest

from tests.support.people import Organization


@pytest.fixture
def faber(transactional_db, stored_keys):
    return Organization("Faber College", is_test=True)
