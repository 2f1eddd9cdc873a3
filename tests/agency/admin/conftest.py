"""Sue supports: staff who may see everything. More permissions come one by one."""

from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.admin import autodiscover
from django.contrib.auth.models import Group, Permission, User

from tenants.lifecycle.provisioning import create_organization
from tests.factories import AuthenticatorFactory
from tests.support.pages import Browser

OURS = [
    app.label
    for app in apps.get_app_configs()
    if Path(app.path).parent == settings.BASE_DIR
]


@pytest.fixture(scope="session", autouse=True)
def records_are_registered():
    """Otherwise the first request does it, and a test before it sees no models."""
    autodiscover()


def make_staff(name, **fields):
    """Return a person of staff, with the second factor that the admin requires."""
    mail = f"{name}@agency.example"
    user = User.objects.create_user(name, mail, is_staff=True, **fields)
    AuthenticatorFactory(user=user)
    return user


def browser_in(group):
    """A browser of Tom, who is staff in this group, or in none."""
    user = make_staff("tom")
    if group:
        user.groups.add(Group.objects.get(name=group))
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def college(db):
    return create_organization("Faber College").tenant


@pytest.fixture
def sue(db):
    user = make_staff("sue")
    views = Permission.objects.filter(codename__startswith="view_")
    user.user_permissions.add(*views)
    return user


@pytest.fixture
def browser(sue):
    browser = Browser()
    browser.force_login(sue, backend="agency.studio.accounts.sign_in.Backend")
    return browser


@pytest.fixture
def allow(sue):
    """Gives Sue a permission, as `app.codename`."""

    def give(name):
        app, codename = name.split(".")
        permission = Permission.objects.get(
            content_type__app_label=app, codename=codename
        )
        sue.user_permissions.add(permission)

    return give
