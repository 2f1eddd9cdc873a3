"""What a process refuses to start with, and what readiness says of it. # slow"""

import socket
import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from agency.devtools.embedded import temporary_home
from agency.devtools.embedded.home import new_master_key
from core.database import sessions
from tests.support.pgbouncer import pgbouncer, through
from tests.support.postgres_pooler import pooling
from tests.support.processes import eventually, own_servers, processes

SERVICES = ("web", "stream", "worker", "deliver", "beat")
WRONG_KEY = "AGENCY_MASTER_KEY is not the key this database was sealed with"
NO_SESSIONS = "DATABASE_URL leads to a pooler that does not keep sessions"
NO_TRANSACTIONS = "DATABASE_URL leads to a pooler that does not keep transactions"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def servers():
    """A database that was sealed with a key, as it has an organization."""
    with temporary_home() as home:
        servers = own_servers(home)
        with processes(home, **servers) as running:
            assert running.manage("create_organization Faber") == 0
        yield servers


@pytest.fixture
def product(servers, tmp_path):
    with processes(tmp_path, **servers) as running:
        yield running


def refuses(product, capsys, sentence, **given):
    """Every process ends by itself, and says why."""
    for name in SERVICES:
        product.start(name, **given)
    eventually(lambda: not any(product.is_alive(name) for name in SERVICES), 90)
    for thread in product.supervisor.relays:
        thread.join(5)
    said = capsys.readouterr().out.splitlines()
    for name in SERVICES:
        assert product.supervisor.services[name].returncode != 0, name
        assert any(line.startswith(name) and sentence in line for line in said), name


def test_a_wrong_master_key_starts_nothing(product, capsys):
    wrong = {"AGENCY_MASTER_KEY": new_master_key()}
    refuses(product, capsys, WRONG_KEY, **wrong)
    assert WRONG_KEY in product.capture("migrate", **wrong)[1]
    assert WRONG_KEY in product.capture("deliver", **wrong)[1]


@contextmanager
def web_that_met_no_database(product, servers, **given):
    """A web process that could not judge at its start, and then finds its database."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    product.start_web(DATABASE_URL=through(servers["DATABASE_URL"], port), **given)
    with relayed(port, urlsplit(servers["DATABASE_URL"]).port):
        yield


@contextmanager
def relayed(port, target):
    """Bytes of one port to another."""
    command = ["python", "-c", RELAY, str(port), str(target)]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


RELAY = """
import socket, sys, threading
def copy(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = server.accept()
    other = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((client, other), (other, client)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""


def ready(product):
    return requests.get(f"{product.url}/health/ready", timeout=10)


def test_a_wrong_master_key_is_not_ready(product, servers):
    wrong = {"AGENCY_MASTER_KEY": new_master_key()}
    with web_that_met_no_database(product, servers, **wrong):
        # Each web process finds the database in its own time.
        eventually(lambda: is_refused_for_its_key(ready(product)), 20)


def is_refused_for_its_key(answer):
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    [sentence] = answer.json()["errors"].get("masterKey", [""])
    return sentence.startswith(WRONG_KEY)


def test_a_web_process_starts_without_its_database_and_is_ready_later(
    product,
    servers,
):
    with web_that_met_no_database(product, servers):
        eventually(lambda: ready(product).status_code == 200, 20)


def what_is_kept(url):
    params = psycopg.conninfo.conninfo_to_dict(url)
    with psycopg.connect(url, autocommit=True) as connection:
        return sessions.what_is_kept(connection, params).value


def test_sessions_of_postgresql_itself_are_kept(servers):
    assert what_is_kept(servers["DATABASE_URL"]) == "session"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_is_judged_by_what_it_does(servers, mode):
    with pooling(servers["DATABASE_URL"], mode) as port:
        assert what_is_kept(through(servers["DATABASE_URL"], port)) == mode


def test_a_busy_pooler_is_found_out_too(servers):
    """Others take the sessions that are given back, so none is met again by chance."""
    with pooling(servers["DATABASE_URL"], "transaction") as port:
        url = through(servers["DATABASE_URL"], port)
        with psycopg.connect(url) as busy, psycopg.connect(url) as busier:
            busy.execute("SELECT 1")
            busier.execute("SELECT 1")
            assert what_is_kept(url) == "transaction"


def test_a_pooler_that_another_client_left_in_another_order_is_found_out(servers):
    with pooling(servers["DATABASE_URL"], "transaction") as port:
        url = through(servers["DATABASE_URL"], port)
        params = psycopg.conninfo.conninfo_to_dict(url)
        with (
            psycopg.connect(url) as other,
            psycopg.connect(url, autocommit=True) as first,
        ):
            other.execute("SELECT 1")
            own = sessions.backend_pid(first)
            other.commit()  # the session handed out next is not the one of the first
            assert sessions.is_session_shared(first, own, params)


def test_the_look_for_a_pooler_prepares_no_statements(servers):
    """In another session they are unknown, which would be an error, not a finding."""
    params = psycopg.conninfo.conninfo_to_dict(servers["DATABASE_URL"])
    with sessions.open_connection(params) as connection:
        for _ in range(10):
            sessions.backend_pid(connection)
        prepared = connection.execute(
            "SELECT count(*) FROM pg_prepared_statements"
        ).fetchone()
    assert prepared == (0,)


LIMIT = "ALTER ROLE CURRENT_USER SET statement_timeout = 30000;"


@pytest.mark.needs("pgbouncer")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_services_work_behind_pgbouncer_and_migrate_asks_for_more(
    product, servers, tmp_path, capsys, mode
):
    given = {"home": tmp_path / "pooler", "pool_mode": mode}
    with pgbouncer(servers["DATABASE_URL"], **given) as pooler:
        url = pooler.url
        assert what_is_kept(url) == mode
        code, said = product.capture("migrate", DATABASE_URL=url)
        assert (code == 0) is (mode == "session")
        assert (NO_SESSIONS in said) is (mode == "transaction")
        product.start_web(DATABASE_URL=url)
        eventually(lambda: ready(product).status_code == 200, 20)
        _, said = product.capture("doctor", DATABASE_URL=url)
    for found in (NO_SESSIONS, LIMIT):
        assert (found in said) is (mode == "transaction")
    assert (LIMIT in capsys.readouterr().out) is (mode == "transaction")


@pytest.mark.needs("pgbouncer")
def test_nothing_starts_behind_a_pooler_that_keeps_no_transactions(
    product, servers, tmp_path, capsys
):
    given = {"home": tmp_path / "pooler", "pool_mode": "statement"}
    with pgbouncer(servers["DATABASE_URL"], **given) as pooler:
        url = pooler.url
        assert what_is_kept(url) == "statement"
        refuses(product, capsys, NO_TRANSACTIONS, DATABASE_URL=url)
        assert NO_TRANSACTIONS in product.capture("migrate", DATABASE_URL=url)[1]
