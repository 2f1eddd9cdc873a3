"""The shortcuts around Django do what Django does, and its private names are there."""

import re
from pathlib import Path

import pytest
from django.db import connection, models
from django.db.backends.base import base as any_base
from django.db.backends.postgresql import base as postgresql
from django.db.models import query
from django.db.models.base import ModelState
from django.db.models.sql.compiler import SQLCompiler
from django.db.transaction import atomic
from psycopg import Connection
from psycopg._preparing import PrepareManager

from core.api import caller_cache
from core.database import base, compiled_sql, shortcuts
from credentials.models import Credential
from verifications.models import Verification

ASKED = [{"policyName": "name", "attributeNames": ["name"]}]
VALUES = {"name": "Alice", "level": "7"}
# Changed by us, or called: a release of Django or psycopg may rename them.
PRIVATE_NAMES = {
    postgresql.DatabaseWrapper: {
        "_configure_connection", "_connection_pools", "_cursor", "_savepoint",
        "_savepoint_commit", "_savepoint_rollback", "create_cursor", "pool",
        "validate_no_broken_transaction", "wrap_database_errors",
    },
    any_base: {"NO_DB_ALIAS"},
    query: {"get_related_populators"},
    SQLCompiler: {"apply_converters", "as_sql", "get_converters"},
    PrepareManager: {"clear", "get", "maybe_add_to_cache"},
}  # fmt: skip


def story_of(faber):
    """What the API shows of a credential that was issued, proven and revoked."""
    alice = faber.hosts("Alice")
    definition = faber.defines("name", "level", supportRevocation=True)
    issued = alice.receives(faber, definition, VALUES)
    asked = faber.asks(alice, attributes=ASKED)
    alice.auto_selects()
    [made] = faber.get("/credentials")
    faber.delete(f"/credentials/{made['credentialId']}")
    shown = faber.get(f"/verifications/{asked['verificationId']}")
    states = [row["state"] for row in (*faber.get("/credentials"), shown)]
    return states, shown["isValid"], alice.get(f"/credentials/{issued}")["values"]


def refuse(*given, **named):
    raise AssertionError("a shortcut is used")


@pytest.mark.parametrize("are_used", [True, False])
def test_a_story_is_the_same_without_them(faber, monkeypatch, are_used):
    if are_used:
        found = story_of(faber)
    else:
        monkeypatch.setattr(compiled_sql, "fetch_rows", refuse)
        monkeypatch.setattr(compiled_sql, "count_rows", refuse)
        monkeypatch.setattr(base.DatabaseWrapper, "_kept_cursor", refuse)
        monkeypatch.setattr(compiled_sql, "ModelState", refuse)
        monkeypatch.setattr(caller_cache, "read_versions", refuse)
        with shortcuts.without():
            found = story_of(faber)
    assert found == (["Revoked", "Accepted"], True, VALUES)
    assert Credential.objects.count() == Verification.objects.count() == 2


def test_each_private_name_that_is_called_above_is_listed():
    source = "".join(
        path.read_text() for path in Path(base.__file__).parent.glob("*.py")
    )
    called = set(re.findall(r"super\(\)\.(_[a-z]\w*)", source))
    assert called and called <= PRIVATE_NAMES[postgresql.DatabaseWrapper]


@pytest.mark.parametrize("owner", PRIVATE_NAMES, ids=lambda one: one.__name__)
def test_the_private_names_are_there(owner):
    assert {name for name in PRIVATE_NAMES[owner] if not hasattr(owner, name)} == set()


def test_the_private_attributes_are_there(db):
    rows = models.QuerySet(Credential)
    compiler = rows.query.get_compiler("default")
    compiler.as_sql()
    assert compiler.klass_info and compiler.select
    assert compiler.annotation_col_map == {}
    state = ModelState()
    assert (state.adding, state.db, state.fields_cache) == (True, None, {})
    with atomic():
        assert isinstance(connection.connection, Connection)
        assert isinstance(connection.connection._prepared, PrepareManager)
