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
def test_each_page_of_each_model_by_group(
    college, nothing_is_rendered, group, subtests
):
    browser = browser_in(group)
    for model in admin.site._registry:
        name = model._meta.model_name
        base = f"/admin/{model._meta.app_label}/{name}/"
        sees = name not in UNSEEN[group]
        with subtests.test(base):
            assert browser.get(base).status_code == (200 if sees else 403)
            adds = name in MAY_ADD[group]
            assert browser.get(f"{base}add/").status_code == (200 if adds else 403)
            if not adds:
                assert browser.send(f"{base}add/", name="x").status_code == 403
            row = model._default_manager.first()
            if row is None:
                continue
            page = f"{base}{row.pk}/change/"
            assert browser.get(page).status_code == (200 if sees else 403)
            changes = name in MAY_CHANGE[group]
            # The built-in network never changes.
            if not changes or name == "network":
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


@pytest.mark.parametrize(("group", "left"), [("Support", 3), ("Operator", 2)])
def test_only_operators_revoke_keys(college, group, left):
    key = college.keys.first()
    form = {"action": "revoke", "_selected_action": [key.pk], "confirmed": "yes"}
    browser_in(group).post("/admin/tenants/apikey/", form)
    assert ApiKey.live().count() == left


@every_group
def test_nobody_of_a_group_becomes_a_superuser(db, group):
    browser = browser_in(group)
    tom = User.objects.get(username="tom")
    path = f"/admin/auth/user/{tom.pk}/change/"
    browser.send(path, username="tom", is_superuser="on", is_staff="on")
    assert browser.get(f"/admin/auth/user/{tom.pk}/password/").status_code == 403
    tom.refresh_from_db()
    assert not tom.is_superuser


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
