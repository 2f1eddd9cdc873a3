"""Fay signs in to the studio and owns Faber College."""

from functools import cache

import pytest
from django.contrib.auth.hashers import get_hasher, make_password

from credentials.models import CredentialDefinition
from tenants.models import AuditEntry
from tests.factories import EmailAddressFactory, MembershipFactory, UserFactory
from tests.support.pages import Browser
from tests.support.people import Organization
from tests.support.steps import restore_faber, step


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
    """Faber College, with Fay, who has signed in."""
    fay = confirmed("fay")
    college = Organization("Faber College", owner=fay)
    college.fay, college.browser = fay, browser_of(fay)
    return college


@pytest.fixture
def faber(request, db, stored_keys):
    """Faber College, after the steps that the test asks for (tests/support/steps.py)."""
    return restore_faber(request, found_college)


@step
def met(faber):
    """The wallet of Alice, which is connected with Faber College by this name."""
    alice, invited = faber.hosts(), faber.invites(name="Alice")
    mine = alice.accepts_invitation(invited["invitation"])
    alice.connection_id = invited["connectionId"]
    alice.known[faber] = (alice.connection_id, mine["connectionId"])
    return alice


@step
def definition(faber):
    """The Degree of a name and a year, which is a number."""
    faber.defines("name", "year", name="Degree", claims={"year": {"type": "integer"}})
    return CredentialDefinition.objects.get()


@pytest.fixture
def fay(request, db):
    is_founded = "faber" in request.fixturenames
    return request.getfixturevalue("faber").fay if is_founded else confirmed("fay")


@pytest.fixture
def browser(request, fay):
    is_founded = "faber" in request.fixturenames
    return request.getfixturevalue("faber").browser if is_founded else browser_of(fay)


@pytest.fixture
def college(faber):
    return faber.made


@pytest.fixture
def url(college):
    return f"/studio/organizations/{college.tenant.pk}"


@pytest.fixture
def api(transactional_db, faber):
    """The API of the organization."""
    return faber


@pytest.fixture
def alice(api, met):
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
