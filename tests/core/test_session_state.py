"""Nothing that must last longer than a transaction is left in a session of PostgreSQL.

A pooler may run each transaction in another session.
"""

import ast
import re
from pathlib import Path

import pytest
from django.db import connection, transaction

from tenants.models import Network
from tests.factories import NetworkFactory

ROOT = Path(__file__).parents[2]
ROOMS = (
    "agency", "connections", "core", "credentials", "sandbox", "tenants",
    "verifications", "wallets", "webhooks",
)  # fmt: skip
# What would last, at the beginning of a statement or anywhere in it.
BEGINNING = re.compile(
    r"\s*(SET(?! (LOCAL|TRANSACTION|CONSTRAINTS) )|RESET|LISTEN|PREPARE|DECLARE) "
)
ANYWHERE = re.compile(
    r"\bpg_(try_)?advisory_(lock|unlock)|\bWITH HOLD\b"
    r"|\bset_config\(.*,\s*false\s*\)"
    r"|\bCREATE TEMP(ORARY)? TABLE\b(?!.* ON COMMIT DROP\b)"
)
WORDS = re.compile(
    "SET|LISTEN|PREPARE|DECLARE|advisory|WITH HOLD|set_config|TEMP", re.ASCII
)
CURSOR = re.compile(r"chunked_cursor|cursor\((?!\))")
# Of commands that an operator runs alone, with a connection of their own.
ALONE = {
    # CREATE INDEX CONCURRENTLY has no transaction.
    ("core/database/indexes.py", "SET lock_timeout = 0"),
    ("core/database/indexes.py", "RESET lock_timeout"),
    # In the input of psql, which ends then.
    ("agency/ops/backups/restoring.py", "RESET ALL;"),
    ("agency/devtools/embedded/postgres.py", "SET scram_iterations = 1"),
}


def text_of(node):
    """The text of a string, of bytes or of an f-string; "" of all else."""
    if isinstance(node, ast.JoinedStr):
        parts = (getattr(part, "value", None) for part in node.values)
        parts = (getattr(part, "value", part) for part in parts)
        return "".join(part if isinstance(part, str) else "{}" for part in parts)
    value = getattr(node, "value", "") if isinstance(node, ast.Constant) else ""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def texts(tree):
    """The texts of a module that are no parts of others and no docstrings."""
    parts = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    parts |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [text_of(node) for node in ast.walk(tree) if node not in parts]


def lasting_statements(source):
    """The statements of a module that leave something in their session."""
    found = [" ".join(text.split()) for text in texts(ast.parse(source))]
    return {one for one in found if BEGINNING.match(one) or ANYWHERE.search(one)}


def named_cursors(source):
    """The calls of `cursor()` with a name, which is a cursor on the server."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") in ("cursor", "chunked_cursor")
        and (node.args or node.keywords or node.func.attr == "chunked_cursor")
    ]


def sources_with(words):
    """The modules that have one of these words: to parse all takes seconds."""
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if words.search(source := path.read_text()):
                yield str(path.relative_to(ROOT)), source


def test_no_statement_leaves_something_in_its_session():
    found = {
        (path, statement)
        for path, source in sources_with(WORDS)
        for statement in lasting_statements(source)
    }
    assert found == ALONE


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))",
        "SET statement_timeout = 0",
        "LISTEN events",
        "DECLARE one CURSOR WITH HOLD FOR SELECT 1",
        "SELECT set_config('search_path', '', false)",
        "CREATE TEMP TABLE moved (id uuid)",
    ],
)
def test_what_lasts_is_found(statement):
    for source in (f"run({statement!r})", f"run(f{statement!r})"):
        assert lasting_statements(source) == {statement}
    assert not lasting_statements("run('SET LOCAL statement_timeout = 0')")
    assert not lasting_statements("run('SELECT pg_advisory_xact_lock(1)')")


def test_no_cursor_has_a_name():
    assert not [
        found for _, source in sources_with(CURSOR) for found in named_cursors(source)
    ]
    assert named_cursors("connection.cursor(name='rows')")


@pytest.mark.django_db
def test_rows_that_are_read_in_parts_need_no_cursor_on_the_server():
    NetworkFactory()
    with transaction.atomic(), connection.cursor() as cursor:
        rows = Network.objects.iterator(chunk_size=1)
        next(rows)
        cursor.execute("SELECT count(*) FROM pg_cursors")
        assert cursor.fetchone() == (0,)
