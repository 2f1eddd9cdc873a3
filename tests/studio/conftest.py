"""Fay signs in to the studio and owns Faber College."""

import pytest
from django.contrib.auth.models import User

from tenants.models import Membership
from tenants.provisioning import create_organization
from tests.pages import Browser, pages

__all__ = ["pages"]


def person(name):
    return User.objects.create_user(name, f"{name}@faber.example", "correct horse battery")


def browser_of(user):
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def fay(db):
    return person("fay")


@pytest.fixture
def browser(fay):
    return browser_of(fay)


@pytest.fixture
def college(fay):
    return create_organization("Faber College", owner=fay)


@pytest.fixture
def url(college):
    return f"/studio/organizations/{college.tenant.pk}"


@pytest.fixture
def viewer(college):
    """The browser of somebody who may only read."""
    vic = person("vic")
    Membership.objects.create(tenant=college.tenant, user=vic, role=Membership.Role.VIEWER)
    return browser_of(vic)


@pytest.fixture
def developer(college):
    """The browser of somebody who may make and revoke keys of the organization."""
    dev = person("dev")
    Membership.objects.create(tenant=college.tenant, user=dev, role=Membership.Role.DEVELOPER)
    return browser_of(dev)


@pytest.fixture
def stranger(db):
    """The browser of somebody from another organization."""
    return browser_of(person("sam"))
