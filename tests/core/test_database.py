"""Connections to PostgreSQL: options of DATABASE_URL, and one-off commands."""

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from unittest.mock import Mock

import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.utils import (
    DataError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from django.test import Client, RequestFactory

from agency.devtools.embedded import postgres, temporary_home
from connections.protocols import trust_ping
from core.api.error_pages import server_error
from core.database import base
from core.database.base import fetch_rows, is_outage, run_as_check
from core.database.options import connection_options
from core.database.pool import MAX_VALUES, Pool
from core.database.prepared_statements import (
    planned_for_values,
    prepare_statements,
)
from core.version import __version__
from tests.support.database import END_OTHER_SESSIONS
from tests.support.paths import ROOT
from tests.support.processes import database_of_test
from tests.support.races import wait_until

CHECK_AFTER_SECONDS = "core.database.pool.CHECK_AFTER_SECONDS"
OURS = f"agency/{__version__}"
SHOW = """
import django, json
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT name, setting FROM pg_settings WHERE name LIKE '%timeout'")
    print(json.dumps(dict(cursor.fetchall()) | {"pool": bool(connection.pool)}))
"""


def run(*command, **given):
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agency.settings"} | given
    command = [sys.executable, *command]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True
    )


def time_limits_with(**given):
    """The time limits of a process with these variables, as the server sees them."""
    ran = run("-c", SHOW, **given)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def url(query=""):
    return os.environ["DATABASE_URL"] + query


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"connect_timeout": 2, "application_name": OURS}),
        ({"sslmode": "require"}, {"sslmode": "require", "connect_timeout": 2}),
        ({"sslrootcert": "/ca.pem"}, {"sslrootcert": "/ca.pem"}),
        ({"connect_timeout": 9}, {"connect_timeout": 9}),
        ({"application_name": "a b"}, {"application_name": f"{OURS} a b"}),
        ({"keepalives_idle": 60}, {"keepalives_idle": 60, "keepalives_count": 3}),
    ],
)
def test_options_of_the_url_win_over_ours(given, expected):
    assert connection_options(given).items() >= expected.items()


def test_parameters_of_the_server_are_joined_and_theirs_stand_last():
    theirs = "-c statement_timeout=60000 -c search_path=agency"
    options = connection_options({"options": theirs})["options"]
    ours = "-c idle_in_transaction_session_timeout=60000 -c random_page_cost=1.1 -c "
    assert options.startswith(ours) and options.endswith(f" {theirs}")


@pytest.mark.slow
def test_a_service_has_a_limit_for_statements_and_a_pool():
    found = time_limits_with(DATABASE_URL=url())
    assert (found["statement_timeout"], found["lock_timeout"]) == ("30000", "0")
    assert found["pool"]


@pytest.mark.slow
def test_a_command_has_a_limit_for_locks_alone():
    found = time_limits_with(
        DATABASE_URL=url(), ONE_OFF_COMMAND="1", DATABASE_LOCK_TIMEOUT="1.5"
    )
    assert (found["statement_timeout"], found["lock_timeout"]) == ("0", "1500")
    assert not found["pool"]


@pytest.mark.slow
def test_parameters_of_the_server_in_the_url_are_in_force():
    found = time_limits_with(
        DATABASE_URL=url("?options=-c%20statement_timeout%3D60000&connect_timeout=5")
    )
    assert found["statement_timeout"] == "60000"
    assert found["idle_in_transaction_session_timeout"] == "60000"


@pytest.mark.slow
def test_an_unknown_option_is_refused_with_a_sentence():
    ran = run("manage.py", "check", DATABASE_URL=url("?sslmod=require"))
    assert ran.returncode != 0
    assert (
        ran.stderr.startswith("CommandError: DATABASE_URL:") and "sslmod" in ran.stderr
    )


@pytest.mark.slow
def test_where_tls_is_asked_for_nothing_goes_in_plain_text():
    ran = run("manage.py", "migrate", DATABASE_URL=url("?sslmode=require"))
    assert ran.returncode != 0
    assert ran.stderr.startswith("CommandError: PostgreSQL is out of reach.")
    assert "server does not support SSL, but SSL was required" in ran.stderr
    found = run("-c", SHOW, DATABASE_URL=url("?sslmode=require"))
    assert found.returncode != 0 and "SSL was required" in found.stderr


@pytest.mark.slow
def test_manage_py_knows_which_commands_end_by_themselves():
    code = "import os, sys; sys.argv = ['manage.py', {!r}, '--help']; import manage\n"
    code += (
        "try: manage.main()\nexcept SystemExit: "
        "print(os.environ.get('ONE_OFF_COMMAND'))"
    )
    assert run("-c", code.format("migrate")).stdout.endswith("1\n")
    assert run("-c", code.format("deliver")).stdout.endswith("None\n")


@pytest.mark.slow
def test_a_command_that_waits_for_a_lock_ends_with_a_sentence():
    """Another process locks a table, as a running service would."""
    with temporary_home() as home:
        database = postgres.start(home / "postgres", postgres.FAST)
        given = {"DATABASE_URL": database, "DATABASE_LOCK_TIMEOUT": "0.2"}
        with psycopg.connect(database) as other:
            other.execute("LOCK TABLE django_migrations")
            holder = other.info.backend_pid
            ran = run("manage.py", "migrate", "--patience", "0", **given)
        assert ran.returncode != 0
        said = ran.stderr.splitlines()[-1]
        assert said.startswith("CommandError: A table could not be locked.")
        assert f"pg_terminate_backend({holder})" in said
        assert run("manage.py", "migrate", **given).returncode == 0


def test_an_answer_that_does_not_come_is_a_lost_connection(
    transactional_db, monkeypatch
):
    connection.ensure_connection()
    assert connection.connection.response_timeout == 35, "longer than a statement"
    monkeypatch.setattr(connection.connection, "response_timeout", 0.05)
    with pytest.raises(OperationalError, match="no response in time") as caught:
        connection.cursor().execute("SELECT pg_sleep(5)")
    assert is_outage(caught.value)
    connection.close()
    read_one()


def end_other_sessions():
    with psycopg.connect(database_of_test(), autocommit=True) as other:
        other.execute(END_OTHER_SESSIONS)


def lend_three(pool):
    """Return what was lent, which the pool has back in its place."""
    lent = [pool.getconn() for _ in range(3)]
    for one in lent:
        pool.putconn(one)
    # They return in another thread.
    wait_until(lambda: pool.get_stats()["pool_available"] >= 3)
    return lent


def test_a_dead_connection_empties_the_pool(transactional_db):
    """All that were open when PostgreSQL went away are replaced at the first."""
    pool = connection.pool
    connection.close()
    lend_three(pool)
    end_other_sessions()
    before = pool.get_stats().get("connections_lost", 0)
    read_one()
    assert pool.get_stats()["connections_lost"] - before == 1


@pytest.fixture
def checks(transactional_db, monkeypatch):
    """The connections that the pool checks with a statement of its own.

    As if each had rested for long.
    """
    monkeypatch.setattr(CHECK_AFTER_SECONDS, 0)
    connection.close()
    checked, check = [], Pool.check_connection

    def check_and_count(connection):
        checked.append(connection)
        check(connection)

    monkeypatch.setattr(Pool, "check_connection", staticmethod(check_and_count))
    return checked


def read_one():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()


def test_a_statement_that_is_a_check_spares_that_of_the_pool(checks):
    assert run_as_check(read_one) == (1,)
    assert connection.connection.response_timeout == 35
    assert checks == []
    connection.close()
    read_one()
    assert len(checks) == 1
    with transaction.atomic():
        before = connection.connection
        assert run_as_check(read_one) == (1,)
        assert connection.connection is before


def test_a_connection_is_checked_only_after_a_rest(checks, monkeypatch):
    monkeypatch.setattr(CHECK_AFTER_SECONDS, 60)
    for _ in range(3):
        read_one()
        connection.close()
    assert len(checks) == 0
    later = time.monotonic() + 60
    monkeypatch.setattr("core.database.pool.monotonic", lambda: later)
    read_one()
    assert len(checks) == 1


def test_a_restart_fails_no_statement_however_short_the_rest(checks, monkeypatch):
    """The socket says that the server has ended the session: none is repeated."""
    monkeypatch.setattr(CHECK_AFTER_SECONDS, 60)
    read_one()
    connection.close()
    end_other_sessions()
    assert read_one() == (1,)
    assert len(checks) == 1


def test_dead_connections_are_replaced_before_the_statement_is_tried_again(checks):
    lend_three(connection.pool)
    end_other_sessions()
    assert run_as_check(read_one) == (1,)
    connection.close()
    assert not any(one.closed for one in lend_three(connection.pool))


def test_a_check_that_gets_no_response_is_tried_with_the_usual_time(
    checks, monkeypatch
):
    monkeypatch.setattr(base, "CHECK_TIMEOUT_SECONDS", 0.05)
    tried = []

    def slow():
        connection.ensure_connection()
        tried.append(connection.connection.response_timeout)
        fetch_rows("SELECT pg_sleep(0.15)", [])

    run_as_check(slow)
    assert tried == [0.05, 35]
    assert connection.connection.response_timeout == 35


def test_a_statement_that_fails_for_itself_is_not_tried_again(checks):
    fails = Mock(side_effect=lambda: fetch_rows("SELECT nothing", []))
    with pytest.raises(ProgrammingError):
        run_as_check(fails)
    fails.assert_called_once()


def test_a_call_of_the_api_checks_its_connection_by_its_first_statement(checks, faber):
    connection.close()
    checks.clear()
    with_signals = Client()  # its requests end by returning the connection
    response = with_signals.get("/connections", headers=faber.headers)
    assert (response.status_code, checks) == (200, [])


def test_an_envelope_checks_its_connection_by_its_first_statement(checks, faber, phone):
    phone.connects(faber)
    for is_dead in (False, True):
        if is_dead:
            end_other_sessions()
        envelope = phone.pack(phone.build(trust_ping.PING))
        connection.close()
        checks.clear()
        kind = {"content_type": "application/ssi-agent-wire"}
        answer = Client().post("/didcomm", envelope, **kind)
        assert (answer.status_code, len(checks)) == (202, is_dead)


@pytest.fixture
def prepared(transactional_db, monkeypatch, settings):
    """Opens a connection as a web process does. Returns its prepared statements."""
    default = settings.DATABASES["default"]
    monkeypatch.setitem(default, "OPTIONS", dict(default["OPTIONS"]))
    for name in ("pool", "server_side_binding", "prepare_threshold"):
        default["OPTIONS"].pop(name)
    opened = []

    def run_repeatedly():
        prepare_statements()
        own = connections.create_connection("default")
        opened.append(own)
        with own.cursor() as cursor:
            for number in range(4):
                cursor.execute("SELECT %s + 1", [number])
            cursor.execute("SELECT statement FROM pg_prepared_statements")
            return [statement for [statement] in cursor.fetchall()]

    yield run_repeatedly
    for own in opened:
        own.close()


def test_what_a_web_process_repeats_is_prepared(prepared):
    assert prepared() == ["SELECT $1 + 1"]


def test_nothing_is_prepared_without_the_setting_and_while_debugging(
    prepared, settings
):
    settings.DEBUG = True
    assert prepared() == []
    settings.DEBUG, settings.DATABASE_PREPARED_STATEMENTS = False, False
    assert prepared() == []


def test_statements_stay_prepared_after_a_rollback(transactional_db):
    """A refused call would make the next ones of its connection slow."""

    def run():
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s + 7", [1])
            return cursor.fetchone()

    def prepared():
        sql = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%+ 7'"
        with connection.cursor() as cursor:
            return cursor.execute(sql).fetchone()[0]

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        for _ in range(4):
            run()
        raise ZeroDivisionError
    assert prepared() == 1
    with pytest.raises(DataError), transaction.atomic():
        run()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
    assert (prepared(), run()) == (1, (8,))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE one ()")
        cursor.execute("DROP TABLE one")
    assert prepared() == 0


def test_a_query_for_many_values_is_planned_for_them(transactional_db):
    """Else each of 100,000 people is compared with each of 1,000 that were found."""
    counted = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s"
    with connection.cursor() as cursor:
        for values, prepared in ((MAX_VALUES, 1), (MAX_VALUES + 1, 0)):
            sql = f"SELECT {values} IN ({', '.join(['%s'] * values)})"
            for _ in range(4):
                cursor.execute(sql, list(range(values)))
            assert cursor.execute(counted, [f"SELECT {values} IN (%"]).fetchone() == (
                prepared,
            )


def test_a_search_is_planned_for_its_values(transactional_db):
    counted = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%+ 8'"
    with connection.cursor() as cursor, planned_for_values():
        for _ in range(4):
            cursor.execute("SELECT %s + 8", [1])
        assert cursor.execute(counted).fetchone() == (0,)


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_statement_whose_columns_have_other_types_fails_once(
    transactional_db, in_transaction
):
    """As in a web process beside a migration."""

    def read():
        with transaction.atomic() if in_transaction else nullcontext():
            return fetch_rows("SELECT name FROM altered WHERE name <> %s", ["x"])

    def elsewhere(*statements):
        with psycopg.connect(database_of_test(), autocommit=True) as other:
            for statement in statements:
                other.execute(statement)

    elsewhere("CREATE TABLE altered (name varchar(5))")
    try:
        for _ in range(4):
            assert read() == []
        elsewhere("ALTER TABLE altered ALTER name TYPE text")
        with pytest.raises(NotSupportedError):
            read()
        assert read() == read() == []
    finally:
        elsewhere("DROP TABLE altered")


def test_a_statement_for_very_many_rows_is_split(prepared):
    """The server takes 65,535 parameters in one statement."""
    assert prepared()
    own = connections.create_connection("default")
    batch = own.ops.bulk_batch_size(["pk", "name", "genesis"], range(100_000))
    own.close()
    assert batch == 21_845


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "is_prepared"), [("agency.web", True), ("agency.asgi", False)]
)
def test_web_processes_prepare_and_others_do_not(module, is_prepared):
    program = (
        f"import {module}; from django.conf import settings; "
        "print(settings.DATABASES['default']['OPTIONS'].get('server_side_binding'))"
    )
    ran = run("-c", program, LOG_LEVEL="WARNING")
    assert ran.stdout.split() == [str(is_prepared or None)], ran.stderr


def raised(statement):
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except Exception as error:
        return error
    raise AssertionError


def test_a_statement_that_fails_is_no_outage(transactional_db):
    for statement in (
        "SET LOCAL statement_timeout = 10; SELECT pg_sleep(1)",
        "SELECT 1/0",
        "SELECT nothing",
    ):
        assert not is_outage(raised(statement))


def test_a_session_that_is_ended_is_an_outage_and_other_errors_are_none(
    transactional_db,
):
    ended = "DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40P01'; END $$"
    assert is_outage(raised(ended)), "of two that waited for each other"
    error = raised("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close()
    assert is_outage(error)
    for other in (ProgrammingError("x"), InterfaceError("cursor"), ValueError()):
        assert not is_outage(other)


@pytest.mark.parametrize(
    ("accept", "kind"), [("text/html", "text/html"), ("*/*", "application")]
)
def test_what_a_middleware_raises_in_an_outage_is_503(accept, kind):
    request = RequestFactory().get("/studio/", headers={"Accept": accept})
    try:
        raise OperationalError("gone")
    except OperationalError:
        answer = server_error(request)
    assert answer.status_code == 503 and answer["Retry-After"]
    assert answer["Content-Type"].startswith(kind)
    assert settings.DATABASES["default"]["ENGINE"] == "core.database"
