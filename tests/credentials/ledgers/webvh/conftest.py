"""Faber is on the network `webvh`, at a public host."""

import pytest

from tests.support.own_webvh import restored
from tests.support.people import Organization
from tests.support.pictures import storage

__all__ = ["storage"]  # the fixture: files of each test in a folder of their own
VALUES = {"Full Name": "Alice", "level": "7"}


def receive_card(faber):
    alice = faber.hosts()
    alice.receives(faber, faber.badge, VALUES)
    return alice


faber = restored(
    lambda: Organization("Faber", network_id="webvh"),
    badge=lambda faber: faber.defines(*VALUES, supportRevocation=True),
    holder=receive_card,
    acme=lambda faber: Organization("Acme"),
)


@pytest.fixture
def badge(faber):
    return faber.badge


@pytest.fixture
def holder(faber, badge):
    """Alice, with the badge."""
    return faber.holder


@pytest.fixture
def acme(faber):
    """On the local network, in the same installation."""
    return faber.acme
