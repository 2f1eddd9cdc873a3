"""A definition and its twin, of an organization on the local network."""

import pytest

from tests.support.own_webvh import restored
from tests.support.people import Organization

VALUES = {"Full Name": "Alice", "level": "7"}


def make_badge(faber):
    name = "Full Name"
    return faber.defines(*VALUES, supportRevocation=True, recipientAttribute=name)


def with_own_did():
    """On the local network, with a did:webvh."""
    Organization("Acme", network_id="webvh")
    faber = Organization("Faber")
    faber.put("/tenants/webvhDid", {})
    return faber


faber = restored(
    with_own_did,
    badge=make_badge,
    alice=lambda faber: faber.hosts(),
    twin=lambda faber: faber.post(twin_path(faber.badge)),
    acme=lambda faber: Organization("Acme Bank"),
)


@pytest.fixture
def badge(faber):
    return faber.badge


@pytest.fixture
def alice(faber):
    return faber.alice


def twin_path(definition):
    return f"/definitions/credentials/{definition['definitionId']}/twin"


@pytest.fixture
def twin(faber, badge):
    return faber.twin


@pytest.fixture
def acme(faber):
    """Another organization on the local network, which verifies."""
    return faber.acme
