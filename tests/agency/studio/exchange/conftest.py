"""Faber College with its API, and Fay, who owns it, in the studio."""

import pytest
from django.contrib.auth.models import User

from organizations.provisioning import create_organization
from tests.agency.studio.conftest import browser, fay, pages, stranger
from tests.support import queues
from tests.support.people import Organization
from tests.support.walks import Walk

__all__ = ["browser", "fay", "pages", "stranger"]


@pytest.fixture
def faber(transactional_db, stored_keys, fay):
    return Organization("Faber College", owner=fay)


@pytest.fixture
def walk(faber, monkeypatch):
    return Walk(faber, monkeypatch)


@pytest.fixture
def acme(stranger):
    """The organization of a stranger."""
    user = stranger.session["_auth_user_id"]
    return create_organization("Acme", owner=User.objects.get(pk=user)).tenant


def url_of(row):
    return f"/studio/organizations/{row.tenant_id}/{row.OBJECT_TYPE}s/{row.pk}"


def text(response):
    assert response.status_code == 200, response.status_code
    return response.content.decode()


@pytest.fixture
def received(phone, faber):
    """Make a connection to an outside agent, which has many messages."""

    def fill(count=1):
        row = phone.connects(faber)
        for _ in range(count):
            phone.says(phone.build("trust_ping/1.0/ping"))
        queues.sweep()
        return row

    return fill
