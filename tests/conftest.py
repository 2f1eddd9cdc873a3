"""People: Faber issues, Alice holds, Acme verifies. Fixtures give organizations and API clients."""

import pytest
from django.test import Client

from tests import keys
from tests.people import Organization


@pytest.fixture
def stored_keys(monkeypatch):
    """Definitions get a stored key of the right size instead of a new one (1.5 to 15 s)."""
    monkeypatch.setattr("wallets.anoncreds.create_definition", keys.definition_like)


@pytest.fixture
def faber(transactional_db, stored_keys):
    return Organization("Faber College")


@pytest.fixture
def acme(transactional_db, stored_keys):
    return Organization("Acme Corp")


@pytest.fixture
def client():
    return Client()
