"""Statements that are executed often find their rows by an index.

Compiled queries are in test_compiled_sql.py, the claims of workers in test_plans.py.
"""

import re
from importlib import import_module

import pytest

from connections.messaging.pair_lock import FOR_CHANGES, LOCK_SQL
from tests.core import test_plans as plans
from tests.support.paths import ROOT
from webhooks.delivery.due import HEADS_SQL
from webhooks.events.emit import EMIT_SQL

VALUES = {"name": "Alice", "level": "7"}
ASKED = [{"policyName": "name", "attributeNames": ["name"]}]
EXCHANGES = ("credentials_credential", "verifications_verification")
GUARD = ' WHERE "id" = %s AND "sequence" = %s AND "state" = ANY(%s)'  # of move()
# Leases of keys are of the writes that run now; one switch of a feed is of each restore
# or fail-over, and all are read.
FEW_ROWS = {
    "tenants_idempotencylease", "tenants_network", "tenants_provider",
    "wallets_sparekey", "webhooks_feedepoch", "webhooks_feedswitch_number_key",
}  # fmt: skip
# Of the system's data key, which each process asks for now and then: what is NULL in
# one row is not known to be rare here.
ASKED_RARELY = {"tenants_datakey_pkey"}
TO_EXPLAIN = re.compile(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b")
CONSTANT = re.compile(
    r'^[A-Z_]+ = \(?\s*f?"+\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b', re.MULTILINE
)
# Commands, migrations, and what counts the rows of a whole period.
RARE = re.compile(
    r"/migrations/|/management/|^agency/(ops|devtools|studio)/|^tenants/lifecycle/"
    r"|/older_processes\.py|/(epochs|timeline)\.py|^tests/|^bench/"
)


def raw_statements():
    """The statements that stand in modules as constants, by their names.

    One for str.format() is left out.
    """
    files = {str(path.relative_to(ROOT)): path for path in ROOT.glob("[a-z]*/**/*.py")}
    modules = [
        name.removesuffix(".py").replace("/", ".")
        for name, path in sorted(files.items())
        if not RARE.search(name) and CONSTANT.search(path.read_text())
    ]
    return {
        f"{module}.{name}": value
        for module in modules
        for name, value in vars(import_module(module)).items()
        if name.isupper() and isinstance(value, str) and TO_EXPLAIN.match(value)
        if "{" not in value
    }


@pytest.fixture
def cycle(faber):
    """What is executed while Alice gets a credential, proves it and loses it."""
    faber.post("/webhooks", {"url": "https://office.example"})
    definition = faber.defines("name", "level", supportRevocation=True)
    with plans.recording() as executed:
        alice = faber.hosts("Alice")
        alice.receives(faber, definition, VALUES)
        faber.asks(alice, attributes=ASKED)
        alice.auto_selects()
        [issued] = faber.get("/credentials")
        faber.delete(f"/credentials/{issued['credentialId']}")
        faber.get("/events")
    return [
        sql
        for sql in dict.fromkeys(sql for sql, _ in executed)
        if TO_EXPLAIN.match(sql)
    ]


def test_each_raw_statement_uses_indexes_whatever_its_parameters(db, subtests):
    """A new constant is explained too, unless its module is among the RARE."""
    found = raw_statements()
    assert {LOCK_SQL, EMIT_SQL, HEADS_SQL} <= {*found.values()}
    with plans.without_table_scans():
        for name, sql in found.items():
            with subtests.test(name):
                assert (
                    plans.read_without_index(plans.generic_plan(sql, None)) <= FEW_ROWS
                )


def test_each_statement_of_a_cycle_uses_indexes_whatever_its_parameters(
    cycle, subtests
):
    """Also those that are built at run time, such as the UPDATE of move()."""
    guarded = [sql for sql in cycle if sql.endswith(GUARD)]
    for table in ("connections_connection", *EXCHANGES):
        assert any(sql.startswith(f'INSERT INTO "{table}"') for sql in cycle)
        assert any(sql.startswith(f'UPDATE "{table}"') for sql in guarded)
    assert {LOCK_SQL + FOR_CHANGES, EMIT_SQL} <= {*cycle}
    with plans.without_table_scans():
        for sql in cycle:
            with subtests.test(sql):
                found = plans.read_without_index(plans.generic_plan(sql, None))
                assert found <= FEW_ROWS | ASKED_RARELY


def test_a_statement_without_an_index_is_noticed(db):
    for sql in (
        "SELECT id FROM credentials_credential WHERE problem = %s",
        "UPDATE credentials_credential SET problem = '' WHERE problem = %(problem)s",
        "SELECT id FROM credentials_credential WHERE problem = %s ORDER BY id",
        # There is an index of those that are pending, for whoever says so.
        "SELECT id FROM webhooks_delivery WHERE status = %s AND object_key = %s",
    ):
        with plans.without_table_scans():
            assert plans.read_without_index(plans.generic_plan(sql, None))
