"""Released migrations never change; new ones are named and follow one another."""

import hashlib
import json
import re
from itertools import pairwise

import pytest
from django.db.migrations.loader import MigrationLoader

from agency.ops.database_schema import APPS
from core.version import __version__
from tests.releases import RELEASES, hashes

LOADER = MigrationLoader(connection=None)
OURS = sorted(key for key in LOADER.disk_migrations if key[0] in APPS)
# {what it replaces: the squashed migration}
SQUASHED = {
    former: key for key in OURS for former in LOADER.disk_migrations[key].replaces
}
RELEASED = {
    folder.name: json.loads((folder / "migrations.json").read_text())
    for folder in sorted(RELEASES.iterdir())
}


@pytest.mark.parametrize("version", RELEASED)
def test_a_released_migration_has_not_changed(version):
    found = hashes()
    changed = [
        path for path, digest in RELEASED[version].items() if found.get(path) != digest
    ]
    assert changed == [], (
        f"Released with {version}: databases have it already and will not run "
        "it again. Restore it "
        "(git checkout) and add a new one: manage.py makemigrations <app> "
        "--name <what_it_does>."
    )


def test_this_version_is_kept():
    assert __version__ in RELEASED, (
        "a new version: run `python -m tests.releases` and commit"
    )


def test_the_hashes_see_one_changed_letter(tmp_path):
    path = tmp_path / "app" / "migrations" / "0001_initial.py"
    path.parent.mkdir(parents=True)
    path.write_text("a")
    before = hashes(tmp_path, ["app"])
    path.write_text("b")
    assert hashes(tmp_path, ["app"]) != before
    assert before == {
        "app/migrations/0001_initial.py": hashlib.sha256(b"a").hexdigest()
    }


@pytest.mark.parametrize(("app", "name"), OURS)
def test_a_migration_has_a_number_and_a_name_of_its_own(app, name):
    assert re.fullmatch(r"\d{4}_[a-z][a-z0-9_]+", name)
    assert "_auto_" not in name and "_merge_" not in name, "say what it does: --name"


@pytest.mark.parametrize("app", APPS)
def test_the_migrations_of_an_app_follow_one_another(app):
    """Two with one number come from two branches: rename the one merged second.

    What follows a replaced one names the squashed migration, as that stays.
    """
    keys = [key for key in OURS if key[0] == app and key not in SQUASHED.values()]
    assert LOADER.graph.leaf_nodes(app) == [SQUASHED.get(keys[-1], keys[-1])]
    assert [int(name[:4]) for _, name in keys] == list(range(1, len(keys) + 1))
    for before, key in pairwise(keys):
        wanted = before if key in SQUASHED else SQUASHED.get(before, before)
        assert wanted in LOADER.disk_migrations[key].dependencies


def test_every_file_is_a_migration_of_ours():
    modules = [LOADER.disk_migrations[key].__module__ for key in OURS]
    assert set(hashes()) == {f"{name.replace('.', '/')}.py" for name in modules}
