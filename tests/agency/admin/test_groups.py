"""What the groups of staff may see and do: each page, each method."""

import re
from importlib import import_module

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User

from agency.support.actions import ACTIONS
from tenants.models import ApiKey
from tests.agency.admin.conftest import browser_in
from tests.support.paths import ROOT

groups = import_module("agency.support.migrations.0001_squashed_0_2_0")
# The later ones, whose models both groups may read.
LATER = (
    "0012_view_read_webvh", "0013_view_own_webvh", "0014_view_openid", "0015_view_trust",
    "0016_view_mailings",
)  # fmt: skip
# Beyond reading: the models whose rows a group may add or change.
MAY_ADD = {"Support": set(), "Operator": {"tenant", "apikey", "network"}}
MAY_CHANGE = {"Support": set(), "Operator": {"provider", "network"}}
UNSEEN = {
    "Support": {
        "datakey", "formerdatakey", "group", "idempotencykey", "keyfiller",
        "keyrequest", "logentry", "sparekey",
    },
    "Operator": set(),
}  # fmt: skip
every_group = pytest.mark.parametrize("group", ["Support", "Operator"])


@every_group
def test_the_migration_gives_a_group_its_permissions(db, group):
    rows = Group.objects.get(name=group).permissions.select_related("content_type")
    found = {f"{row.content_type.app_label}.{row.codename}" for row in rows}
    later = [import_module(f"agency.support.migrations.{name}") for name in LATER]
    viewed = {name for one in later for name in one.VIEWED}
    assert found == {*groups.GROUPS[group], *viewed}
    assert not found & {"auth.change_user", "auth.change_group", "auth.add_user"}


@every_group
def test_what_a_group_may_do_with_each_model(college, rf, group):
    browser_in(group)
    request = rf.get("/")
    request.user = User.objects.get(username="tom")
    for model, pages in admin.site._registry.items():
        name = model._meta.model_name
        assert pages.has_view_permission(request) == (name not in UNSEEN[group]), name
        assert pages.has_add_permission(request) == (name in MAY_ADD[group]), name
        changes = pages.has_change_permission(request)
        assert changes == (name in MAY_CHANGE[group]), name
        row = model._default_manager.first()
        assert not row or not pages.has_delete_permission(request, row), name
    keys = admin.site._registry[ApiKey]
    assert keys.has_revoke_permission(request) == (group == "Operator")


@every_group
def test_each_page_asks_for_its_permission(
    college, nothing_is_rendered, group, subtests
):
    """For operators, only where they may do what support may not.

    Each list is opened with words to search for, which may be any.
    """
    browser = browser_in(group)
    beyond = MAY_ADD[group] | MAY_CHANGE[group] | UNSEEN["Support"]
    for model in admin.site._registry:
        name = model._meta.model_name
        if group == "Operator" and name not in beyond:
            continue
        base = f"/admin/{model._meta.app_label}/{name}/"
        sees = 403 if name in UNSEEN[group] else 200
        with subtests.test(base):
            assert browser.get(base, {"q": "any 'words"}).status_code == sees
            adds = 200 if name in MAY_ADD[group] else 403
            if name in MAY_ADD["Operator"]:
                assert browser.get(f"{base}add/").status_code == adds
            if adds == 403:
                assert browser.send(f"{base}add/", name="x").status_code == 403
            row = model._default_manager.first()
            if row is None:
                continue
            page = f"{base}{row.pk}/change/"
            assert browser.get(page).status_code == sees
            # The built-in network never changes.
            if name not in MAY_CHANGE[group] or name == "network":
                assert browser.send(page, name="x").status_code == 403
            deleted = browser.send(f"{base}{row.pk}/delete/", post="yes")
            assert deleted.status_code in (403, 404)
            assert model._default_manager.filter(pk=row.pk).exists()


@every_group
def test_pages_that_are_no_models_are_for_staff(college, client, group):
    browser = browser_in(group)
    for path in ("/admin/", "/admin/search/?q=faber", "/admin/queues/"):
        assert client.get(path).status_code == 302
        assert browser.get(path).status_code == 200
        if path != "/admin/":
            assert browser.post(path).status_code == 405
    tom = User.objects.get(username="tom")
    assert browser.get(f"/admin/auth/user/{tom.pk}/password/").status_code == 403


def test_the_docs_say_what_each_group_may_do():
    text = (ROOT / "docs" / "support.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+?) \| (yes|no) \| yes \|$", text, re.M))
    labels = {
        f"{action.label.lower()} ({action.model._meta.verbose_name})": name
        for name, action in ACTIONS.items()
    }
    for label, name in labels.items():
        permission = f"support.{ACTIONS[name].permission}"
        assert rows[label] == ("yes" if permission in groups.SUPPORT else "no"), label
