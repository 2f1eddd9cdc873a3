"""Migrations since the last release lock no table for long, and rewrite none.

The statements are those that `migrate` really runs on the database of the release.
"""

import re
from collections import defaultdict
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.releases.former import load_database
from tests.releases.test_upgrade import database
from tests.support.database import new_database

# A few rows for each organization, person or network, so that a statement on all of
# them is quick. Others may have one for each holder, exchange, message or call.
SMALL = {
    "account_emailaddress",
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    "auth_user",
    "credentials_credentialdefinition",
    "django_content_type",
    "django_migrations",
    "django_session",
    "tenants_apikey",
    "tenants_membership",
    "tenants_network",
    "tenants_provider",
    "tenants_tenant",
    "webhooks_webhook",
}
TABLE = r'(?:IF EXISTS )?(?:ONLY )?"?(\w+)"?'
# What blocks writers for as long as all rows of a table are read or written.
SLOW = {
    rf"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)[^;]*? ON {TABLE}": "BuildIndex",
    rf"DROP INDEX (?!CONCURRENTLY){TABLE}": "DROP INDEX CONCURRENTLY",
    rf"ALTER TABLE {TABLE} [^;]*\bUNIQUE\b(?! USING INDEX)": "a unique BuildIndex",
    rf"ALTER TABLE {TABLE} [^;]*\bSET NOT NULL": "a validated constraint, then this",
    rf"ALTER TABLE {TABLE} ADD CONSTRAINT [^;]*\bCHECK\b(?![^;]*NOT VALID)": (
        "NOT VALID, then VALIDATE CONSTRAINT in a migration of its own"
    ),
    rf"ALTER TABLE {TABLE} ADD CONSTRAINT [^;]*\bFOREIGN KEY\b(?![^;]*NOT VALID)": (
        "NOT VALID, then VALIDATE CONSTRAINT in a migration of its own"
    ),
    rf"(?:^|;|\$\$)\s*(?:TRUNCATE(?: TABLE)?|CLUSTER|REINDEX TABLE) {TABLE}": (
        "something that locks less"
    ),
    rf"(?:^|;|\$\$)\s*LOCK TABLE {TABLE}(?! IN ACCESS EXCLUSIVE MODE)": "LockTables",
}
# What the processes of the release before do not survive.
BREAKING = {
    rf"ALTER TABLE {TABLE} [^;]*\bRENAME\b": "a new column or table",
    rf"ALTER TABLE {TABLE} [^;]*\bDROP COLUMN\b": "dropping it a release later",
    rf"ALTER TABLE {TABLE} [^;]*\bDROP DEFAULT\b": "db_default",
    rf"DROP TABLE {TABLE}": "dropping it a release later",
}
CREATED = rf"CREATE TABLE {TABLE} \("
CHANGE = rf"(?:^|;)\s*(?:UPDATE|DELETE FROM|INSERT INTO) {TABLE}"
# Each takes a lock that is kept until the migration is committed.
LOCKING = rf"(?:ALTER TABLE|REFERENCES|DROP TABLE) {TABLE}"
LOCKED = rf"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE"


class Statement(NamedTuple):
    migration: str
    sql: str
    is_atomic: bool


def faults_of(statements, existing):
    """What is wrong with the statements of one migration. existing: tables of before."""
    large = set(existing) - SMALL
    faults, locking, locked = [], set(), set()
    # A new table may take the name of one of before, for processes of before too.
    replaced = {name for one in statements for name in re.findall(CREATED, one.sql)}
    for one in statements:
        large -= set(re.findall(CREATED, one.sql))
        for rules, tables in ((SLOW, large), (BREAKING, set(existing) - replaced)):
            for pattern, better in rules.items():
                found = set(re.findall(pattern, one.sql, re.IGNORECASE))
                faults += [
                    f"{one.migration}: {one.sql[:200]}: use {better}"
                    for _ in found & tables
                ]
        if one.is_atomic:
            locked |= set(re.findall(LOCKED, one.sql))
            locking |= set(re.findall(LOCKING, one.sql, re.IGNORECASE)) & set(existing)
        changed = set(re.findall(CHANGE, one.sql, re.IGNORECASE)) & large
        if one.is_atomic and changed:
            faults.append(
                f"{one.migration}: {one.sql[:200]}: use update_in_batches with "
                "atomic = False, in a migration of its own"
            )
    if len(locking) > 1 and not locking <= locked:
        faults.append(f"{one.migration}: begin with LockTables of {sorted(locking)}")
    return faults


@pytest.mark.parametrize(
    "sql",
    [
        'CREATE INDEX "a" ON "wallets_key" ("did")',
        'CREATE UNIQUE INDEX "a" ON "wallets_key" ("did") WHERE did IS NOT NULL',
        'DROP INDEX "wallets_key"',
        'ALTER TABLE "wallets_key" ADD COLUMN "a" bytea NULL UNIQUE',
        'ALTER TABLE "wallets_key" ADD CONSTRAINT "a" UNIQUE ("did")',
        'ALTER TABLE "wallets_key" ADD CONSTRAINT "a" CHECK (b > 1)',
        'ALTER TABLE "wallets_key" ADD CONSTRAINT a FOREIGN KEY ("b") REFERENCES c',
        'ALTER TABLE "wallets_key" ALTER COLUMN "a" SET NOT NULL',
        'ALTER TABLE "wallets_key" ALTER COLUMN "a" DROP DEFAULT',
        'ALTER TABLE "wallets_key" RENAME COLUMN "a" TO "b"',
        'ALTER TABLE "tenants_tenant" DROP COLUMN "a" CASCADE',
        'DROP TABLE "tenants_tenant" CASCADE',
        "LOCK TABLE wallets_key",
        'UPDATE "wallets_key" SET a = 1',
        'SELECT 1; DELETE FROM "wallets_key"',
    ],
)
def test_the_rules_find(sql):
    found = faults_of([Statement("x", sql, True)], ["wallets_key", "tenants_tenant"])
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("sql", "is_atomic"),
    [
        ('CREATE INDEX CONCURRENTLY "a" ON "wallets_key" ("did")', False),
        (
            'ALTER TABLE "wallets_key" ADD COLUMN "a" boolean DEFAULT true NOT NULL',
            True,
        ),
        ('ALTER TABLE "wallets_key" ADD COLUMN "a" bytea NULL', True),
        ('ALTER TABLE "wallets_key" ADD CONSTRAINT a UNIQUE USING INDEX b', True),
        ("ALTER TABLE wallets_key ADD CONSTRAINT a CHECK (b > 1) NOT VALID", True),
        ('ALTER TABLE "wallets_key" VALIDATE CONSTRAINT "a"', True),
        ('UPDATE "wallets_key" SET a = 1 WHERE "id" IN (1, 2)', False),
        ('UPDATE "tenants_tenant" SET a = 1', True),
        ('CREATE INDEX "a" ON "tenants_tenant" ("did")', True),
        ('CREATE TABLE "new" ("a" bytea NOT NULL UNIQUE)', True),
        (
            "ALTER TABLE wallets_key RENAME TO wallets_key_before; "
            "CREATE TABLE wallets_key (LIKE wallets_key_before); "
            "CREATE INDEX a ON wallets_key (did)",
            True,
        ),
    ],
)
def test_the_rules_allow(sql, is_atomic):
    one = Statement("x", sql, is_atomic)
    assert faults_of([one], ["wallets_key", "tenants_tenant"]) == []


@pytest.mark.parametrize(
    ("locked", "count"), [([], 1), (["wallets_key"], 1), (["wallets_key", "a_b"], 0)]
)
def test_several_tables_are_locked_first(locked, count):
    sql = [f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE" for table in locked]
    sql += ['ALTER TABLE "wallets_key" ADD COLUMN "a" bytea NULL']
    sql += ['ALTER TABLE "new" ADD CONSTRAINT c FOREIGN KEY ("b") REFERENCES "a_b"']
    statements = [Statement("x", one, True) for one in sql]
    assert len(faults_of(statements, ["wallets_key", "a_b"])) == count


@pytest.fixture
def former(former_release, django_db_setup, django_db_blocker):
    """This process is in a database of the last release."""
    with new_database("rules") as url, django_db_blocker.unblock():
        load_database(former_release, url)
        with database(url.rpartition("/")[2]):
            yield


@contextmanager
def recorded():
    """Yield {migration: statements}, filled while the executor runs."""
    statements, current = defaultdict(list), ["before"]

    def record(execute, sql, params, many, context):
        atomic = context["connection"].in_atomic_block
        statements[current[0]].append(Statement(current[0], str(sql), atomic))
        return execute(sql, params, many, context)

    def progress(action, migration=None, fake=False):
        if action == "apply_start":
            current[0] = str(migration)

    with connection.execute_wrapper(record):
        yield statements, progress


def files_of_tables():
    """{table: number of its file}, which is another one after the table is rewritten."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relfilenode FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = current_schema()::regnamespace"
        )
        return dict(cursor.fetchall())


def test_new_migrations_lock_no_table_for_long(former):
    before = files_of_tables()
    with recorded() as (statements, progress):
        executor = MigrationExecutor(connection, progress)
        executor.migrate(executor.loader.graph.leaf_nodes())
    assert statements, "the last release has all migrations: nothing was looked at"
    faults = [fault for one in statements.values() for fault in faults_of(one, before)]
    assert faults == []
    after = files_of_tables()
    rewritten = [name for name, file in before.items() if file not in after.values()]
    assert rewritten == []
