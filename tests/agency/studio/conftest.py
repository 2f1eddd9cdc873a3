"""Fay signs in to the studio and owns Faber College."""

from functools import cache

import pytest
from django.contrib.auth.hashers import get_hasher, make_password

from tenants.models import AuditEntry
from tests.factories import EmailAddressFactory, MembershipFactory, UserFactory
from tests.support.database import Template
from tests.support.pages import Browser
from tests.support.people import Organization


@cache
def hashed(algorithm):
    """The password of all, hashed once."""
    return make_password("correct horse battery", hasher=algorithm)


def person(name):
    return UserFactory(username=name, password=hashed(get_hasher().algorithm))


def confirmed(name):
    """A person whose mail address is confirmed."""
    return EmailAddressFactory(user=person(name)).user


def browser_of(user):
    browser = Browser()
    browser.force_login(user, backend="agency.studio.accounts.sign_in.Backend")
    return browser


def found_college():
    """Faber College, with Fay."""
    fay = confirmed("fay")
    college = Organization("Faber College", owner=fay)
    college.fay = fay
    return college


def meet_alice():
    """The same, with the wallet of Alice, which is connected with it by this name."""
    college = found_college()
    alice, invited = college.hosts(), college.invites(name="Alice")
    mine = alice.accepts_invitation(invited["invitation"])
    alice.connection_id = invited["connectionId"]
    alice.known[college] = (alice.connection_id, mine["connectionId"])
    college.alice = alice
    return college


FOUNDED, MET = Template(found_college), Template(meet_alice)


@pytest.fixture
def founded(request, db):
    return (MET if "met" in request.fixturenames else FOUNDED)()


@pytest.fixture
def met(founded, transactional_db):
    return founded.alice


@pytest.fixture
def fay(request, db):
    is_founded = "founded" in request.fixturenames
    return request.getfixturevalue("founded").fay if is_founded else confirmed("fay")


@pytest.fixture
def browser(fay):
    return browser_of(fay)


@pytest.fixture
def college(founded):
    return founded.made


@pytest.fixture
def url(college):
    return f"/studio/organizations/{college.tenant.pk}"


@pytest.fixture
def api(transactional_db, stored_keys, founded):
    """The API of the organization."""
    return founded


@pytest.fixture
def alice(api, met):
    """The wallet of Alice, which is connected with the organization by this name."""
    return met


def browser_with(role, tenant, name="someone"):
    """The browser of a new member of the organization."""
    member = MembershipFactory(tenant=tenant, user=confirmed(name), role=role)
    return browser_of(member.user)


@pytest.fixture
def viewer(college):
    """The browser of somebody who may only read."""
    return browser_with("viewer", college.tenant, "vic")


@pytest.fixture
def developer(college):
    """The browser of somebody who may make and revoke keys of the organization."""
    return browser_with("developer", college.tenant, "dev")


@pytest.fixture
def stranger(db):
    """The browser of somebody from another organization."""
    return browser_of(person("sam"))


def actions(**lookups):
    """What these entries of the log say that was done, in their order."""
    found = AuditEntry.objects.filter(**lookups).order_by("pk")
    return list(found.values_list("action", flat=True))


def read(browser, path):
    """The text of a page that is there."""
    response = browser.get(path)
    assert response.status_code == 200, path
    return response.text
