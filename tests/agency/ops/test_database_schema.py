"""Readiness looks at the tables themselves, not at the names of migrations alone."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agency.ops import database_schema, health
from core.version import __version__

pytestmark = pytest.mark.django_db
DROP_OFFERS = "ALTER TABLE credentials_credential DROP COLUMN offer_body CASCADE"
CHANGES = {
    DROP_OFFERS: "credentials_credential lacks the column offer_body (bytea)",
    "ALTER TABLE tenants_tenant ALTER name TYPE varchar(50)": (
        "tenants_tenant has the column name as (character varying(50) not null), "
        "not (character varying(200) not null)"
    ),
    "ALTER TABLE wallets_wallet ALTER link_secret DROP NOT NULL": (
        "wallets_wallet has the column link_secret as (bytea), not (bytea not null)"
    ),
    "ALTER TABLE wallets_key DROP CONSTRAINT key_is_live_or_tombstone": (
        "wallets_key lacks the constraint key_is_live_or_tombstone "
        "(check retired_at, seed, wallet_id)"
    ),
    "DROP INDEX one_system_data_key": (
        "tenants_datakey lacks the index one_system_data_key (unique "
        "(expression) where …)"
    ),
    "DROP TABLE webhooks_attempt": "there is no table webhooks_attempt",
}


@pytest.fixture(autouse=True)
def first_look(monkeypatch):
    monkeypatch.setattr(health, "schema_is_right", False)


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_the_file_describes_what_the_migrations_make():
    """Fails after a new migration.

    Then run `manage.py check_schema --write` with a migrated database.
    """
    found = database_schema.leave_out_former_columns(database_schema.read_schema())
    assert found == database_schema.expected_schema()


def test_columns_of_the_former_version_only_are_not_needed():
    found = database_schema.read_schema()["webhooks_webhook"]["column"]
    expected = database_schema.expected_schema()["webhooks_webhook"]["column"]
    assert set(found) - set(expected) == {"retry_unconfirmed"}


def test_every_table_of_ours_is_described():
    tables = connection.introspection.table_names()
    ours = {name for name in tables if name.split("_")[0] in database_schema.APPS}
    assert ours == set(database_schema.expected_schema())


@pytest.mark.parametrize("statement", CHANGES)
def test_what_a_table_lacks_is_said_although_all_migrations_are_applied(statement):
    execute(statement)
    # Readiness asks in another thread, which would not see the change.
    text = health.check_migrations()
    said = f"the schema differs from what version {__version__} expects: "
    assert text.startswith(said)
    assert CHANGES[statement] in text and text.endswith("restore a backup")


def test_the_command_lists_every_difference():
    execute(DROP_OFFERS)
    execute("ALTER TABLE credentials_credential DROP COLUMN problem CASCADE")
    with pytest.raises(CommandError) as refused:
        call_command("check_schema")
    assert "lacks the column offer_body" in str(refused.value)
    assert "lacks the column problem" in str(refused.value)


def test_the_command_agrees_with_a_migrated_database(capsys):
    call_command("check_schema")
    said = f"The database has the tables that version {__version__} needs.\n"
    assert capsys.readouterr().out == said


def test_a_database_that_is_ahead_of_the_code_is_ready():
    execute("ALTER TABLE tenants_tenant ADD COLUMN colour text")
    execute("CREATE INDEX of_tomorrow ON tenants_tenant (colour)")
    execute("CREATE TABLE tenants_tomorrow (id bigint)")
    assert health.check_migrations() is None


def test_a_process_looks_with_one_query_until_it_has_found_its_schema(
    django_assert_num_queries,
):
    execute("ALTER TABLE tenants_tenant RENAME name TO title")
    assert health.compare_schema()
    execute("ALTER TABLE tenants_tenant RENAME title TO name")
    with django_assert_num_queries(1):
        assert health.compare_schema() is None
    execute("ALTER TABLE tenants_tenant DROP COLUMN name")
    with django_assert_num_queries(0):
        assert health.compare_schema() is None
