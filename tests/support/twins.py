"""A definition and its twin, of an organization on the local network."""

import pytest

from credentials.ledgers.webvh import served_logs
from tests.support.own_webvh import on_webvh
from tests.support.people import Organization

VALUES = {"Full Name": "Alice", "level": "7"}


@pytest.fixture
def faber(settings, storage, transactional_db, stored_keys):
    """On the local network, with a did:webvh."""
    served_logs.remember.cache_clear()
    on_webvh(settings, "Acme")  # sets the public host
    faber = Organization("Faber")
    faber.put("/tenants/webvhDid", {})
    return faber


@pytest.fixture
def badge(faber):
    name = "Full Name"
    return faber.defines(*VALUES, supportRevocation=True, recipientAttribute=name)


@pytest.fixture
def alice(faber):
    return faber.hosts()


def twin_path(definition):
    return f"/definitions/credentials/{definition['definitionId']}/twin"


@pytest.fixture
def twin(faber, badge):
    return faber.post(twin_path(badge))
