"""Processes of the release before run beside the tables of this version.

So the services need not stop for an upgrade, and an upgrade can be taken back.
"""

import ast
import json
import tarfile

import psycopg
import pytest
import requests

from agency.celery import app
from agency.ops import database_schema
from tests.chaos.ledger import Ledger
from tests.chaos.stories import Pair, careful
from tests.releases.former import SOURCE, former_processes, read_known
from tests.support.keys import definition_like
from tests.support.processes import PATIENCE, eventually, processes, same_server
from wallets.anoncreds import Definition, normalise_name
from wallets.anoncreds.issuing import check_key_proof

pytestmark = pytest.mark.timeout(300)
LEFT = "SELECT count(*) FROM connections_inboundmessage WHERE status = 'pending'"
ROTATE = "rotate_data_keys --older-than 0"
SESSIONS = (
    "SELECT application_name FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND datname = current_database() AND backend_type = 'client backend'"
)
GENERATIONS = "SELECT generation FROM tenants_datakey"
STEPS = ("meet", "offer", "write", "ask", "decline", "wish")


@pytest.fixture
def ledger(servers):
    return Ledger(servers["DATABASE_URL"])


@pytest.fixture
def pair(former_release):
    """Faber and a holder, without an address yet."""
    headers = read_known(former_release)["headers"]["organization"]
    return Pair(careful("", headers), careful("", headers), None, 1)


def define(pair):
    pair.definition = pair.office.defines("name", "degree", name="Degree")


def read_former(former_release, name):
    with tarfile.open(former_release / SOURCE) as archive:
        return archive.extractfile(name).read().decode()


@pytest.fixture
def both(home, servers, source):
    """The web servers of this version and of the former one, beside the new tables."""
    (home / "former").mkdir()
    given = servers | {"STORAGE_ROOT": str(home / "storage")}
    with (
        processes(home, **servers) as product,
        former_processes(home / "former", source, **given) as former,
    ):
        assert product.manage("migrate --verbosity 0") == 0
        product.start_web()
        former.start_web()
        yield product, former


def test_both_versions_serve_until_data_keys_are_rotated(both, ledger, pair):
    product, former = both
    ready = requests.get(f"{former.url}/health/ready", timeout=30)
    assert (ready.status_code, ready.json()["migrations"]) == (200, "ok")
    pair.lead_to(former.url)
    define(pair)
    for step in STEPS:
        getattr(pair, step)()
    for began, goes_on in ((product, former), (former, product)):
        exchange(pair, began.url, goes_on.url)
    former.start("worker")
    former.start("beat")
    eventually(lambda: ledger.rows(LEFT) == [(0,)], PATIENCE)
    # It could not read what is sealed with new keys.
    assert ("",) in ledger.rows(SESSIONS)
    assert product.manage(ROTATE) == 1
    assert set(ledger.rows(GENERATIONS)) == {(1,)}
    former.supervisor.stop(grace=5)
    assert product.manage(ROTATE) == 0
    assert set(ledger.rows(GENERATIONS)) == {(2,)}


def exchange(pair, began, goes_on):
    """An offer and a request by one version are answered through the other."""
    pair.lead_to(began)
    pair.meet()
    credential = pair.offered(False)
    pair.lead_to(goes_on)
    [mine] = pair.open("credentials", "Offered")
    pair.alice.post(mine)
    pair.office.put(f"/credentials/{credential}")
    assert pair.alice.get(mine)["state"] == "Issued"
    pair.lead_to(began)
    pair.ask()
    found = pair.office.get("/verifications", connectionId=pair.known()[0])
    assert found[0]["isValid"] is True


def test_a_backup_of_before_the_upgrade_brings_the_former_version_back(
    home, servers, source, pair, tmp_path
):
    """This version backs up the former's tables, and restores them as they were."""
    empty = servers | {"DATABASE_URL": same_server(servers["DATABASE_URL"], "empty")}
    with processes(home, **servers) as product:
        assert product.manage(f"backup {tmp_path / 'before'}") == 0
        assert product.manage("migrate --verbosity 0") == 0
    server = same_server(servers["DATABASE_URL"], "postgres")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty")
    with processes(tmp_path, **empty) as product:
        assert product.manage(f"restore {tmp_path / 'before'}") == 0
    with former_processes(tmp_path, source, **empty) as former:
        former.start_web()
        assert requests.get(f"{former.url}/health/ready", timeout=30).ok
        pair.lead_to(former.url)
        define(pair)
        pair.meet()
        pair.offer()


def test_the_new_tables_have_all_that_the_former_version_needs(
    former_release, django_db_setup, db
):
    """What its readiness looks at. A column that it does not know may be missing in
    what it inserts."""
    wanted = json.loads(read_former(former_release, "agency/schema.json"))
    found = database_schema.read_schema()
    assert database_schema.find_differences(wanted, found) == []
    missing = [
        f"{table}.{column}"
        for table, column in columns_without_default()
        if table in wanted and column not in wanted[table]["column"]
    ]
    assert missing == [], "give them null=True or a db_default"


def columns_without_default():
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND is_nullable = 'NO' "
            "AND column_default IS NULL AND is_identity = 'NO'"
        )
        return cursor.fetchall()


def test_workers_know_the_tasks_that_the_former_version_sends(former_release):
    app.loader.import_default_modules()
    settings = read_former(former_release, "agency/settings.py")
    sent = {line.split('"')[3] for line in settings.splitlines() if '"task": "' in line}
    assert len(sent) > 5
    # Those of unreleased commits too.
    sent |= {
        f"organizations.tasks.{name}"
        for name in ("count_usage", "erase", "delete_old_exchanges")
    }
    sent.add("agency.holder_pages.tasks.forget_closed_links")
    sent.add("agency.web_wallet.tasks.forget_ended_sessions")
    assert sent - set(app.tasks) == set()


def test_the_former_version_can_use_new_spare_keys(former_release):
    """It takes them for one attribute, and renames that."""
    function = next(
        node
        for node in ast.parse(read_former(former_release, "wallets/pool.py")).body
        if isinstance(node, ast.FunctionDef) and node.name == "relabel"
    )
    names = {"Definition": Definition, "common_view": normalise_name}
    exec(compile(ast.Module([function], []), "pool.py", "exec"), names)
    issuer = "F72i3Y3Q4i466efjYJYCHM"
    schema_id = f"{issuer}:2:x:1"
    schema = {"issuerId": issuer, "name": "x", "version": "1", "attrNames": ["a0"]}
    spare = definition_like(schema_id, schema, issuer, "spare", True)
    schema["attrNames"] = ["Full Name"]
    made = names["relabel"](spare, schema_id, schema, issuer, "default", False)
    assert set(made.public["value"]["primary"]["r"]) == {"master_secret", "fullname"}
    check_key_proof(made)
