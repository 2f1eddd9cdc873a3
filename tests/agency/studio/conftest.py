"""Fay signs in to the studio and owns Faber College."""

from functools import cache

import pytest
from django.contrib.auth.hashers import get_hasher, make_password
from django.contrib.auth.models import User

from organizations.provisioning import create_organization
from tenants.models import Membership
from tests.support.pages import Browser, pages

__all__ = ["pages"]


@cache
def hashed(algorithm):
    """The password of all, hashed once: Argon2 is slow on purpose."""
    return make_password("correct horse battery", hasher=algorithm)


def person(name):
    password = hashed(get_hasher().algorithm)
    return User.objects.create(
        username=name, email=f"{name}@faber.example", password=password
    )


def browser_of(user):
    browser = Browser()
    browser.force_login(user, backend="agency.studio.accounts.sign_in.Backend")
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
    Membership.objects.create(
        tenant=college.tenant, user=vic, role=Membership.Role.VIEWER
    )
    return browser_of(vic)


@pytest.fixture
def developer(college):
    """The browser of somebody who may make and revoke keys of the organization."""
    dev = person("dev")
    Membership.objects.create(
        tenant=college.tenant, user=dev, role=Membership.Role.DEVELOPER
    )
    return browser_of(dev)


@pytest.fixture
def stranger(db):
    """The browser of somebody from another organization."""
    return browser_of(person("sam"))
