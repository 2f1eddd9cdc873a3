"""People: Faber issues, Alice holds, Acme verifies. Fixtures give organizations and API clients."""

import socket

import pytest
from django.test import Client

from agency import addresses
from tests import keys
from tests.people import Organization


@pytest.fixture(autouse=True)
def only_this_machine_has_a_name(monkeypatch):
    """No test asks the network for a name."""
    look_up = addresses.look_up

    def local(host, port, flags=0):
        return look_up(host, port, 0 if host == "localhost" else socket.AI_NUMERICHOST)

    monkeypatch.setattr(addresses, "look_up", local)


@pytest.fixture
def stored_keys():
    """Definitions get a stored key of the right size instead of a new one (1.5 to 15 s)."""
    with keys.stored_keys():
        yield


@pytest.fixture
def faber(transactional_db, stored_keys):
    return Organization("Faber College")


@pytest.fixture
def acme(transactional_db, stored_keys):
    return Organization("Acme Corp")


@pytest.fixture
def client():
    return Client()
