"""Every page of an organization with 100,000 rows of each kind is as it was with few.

The rows are copies, made by a few statements: their sealed columns cannot be opened.
"""

import json
import os
import re
import time

import pytest
from django.db import connection

from bench.many_rows import copy_row, execute_statements, verkey_sql
from connections.models import BasicMessage, Connection, OutboundMessage
from credentials.models import Credential
from tenants.models import AuditEntry
from tests.agency.pages.test_routes import BOUNDS, HTML
from verifications.models import Verification
from wallets.models import Key, Wallet
from webhooks.models import Delivery, Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.django_db(transaction=True),
]
MANY = int(os.environ.get("ROWS_OF_PAGES", "100000"))
MAX_BYTES = 250_000
# Of one statement. Reading 100,000 rows takes some times as long, however often it is
# tried; a busy machine lets one try be quick.
MAX_SECONDS, TRIES = 0.2, 10
# The copies are older than the rows of the world. So the pages show those first.
NUMBERED = """
CREATE TABLE numbered AS
SELECT n, uuidv7(age) AS own, uuidv7(age) AS own_key, now() + age AS moment
FROM (
    SELECT n, interval '-1 hour' - n * interval '5 seconds' AS age
    FROM generate_series(1, {count}) AS n
) AS aged;
ANALYZE numbered
"""
COPIED = (
    Key, Connection, Credential, Verification, Event, Delivery, Wallet,
    OutboundMessage, BasicMessage, AuditEntry,
)  # fmt: skip
TABLES = {model._meta.db_table for model in COPIED}
READS = re.compile(r"\s*(SELECT|WITH)\b")


def copy(model, row, source="numbered", **changed):
    columns = {field.column for field in model._meta.concrete_fields}
    times = columns & {
        "created_at",
        "updated_at",
        "sent_at",
        "issued_at",
        "verified_at",
    }
    times = {name for name in times if getattr(row, name) is not None}
    changed = {"id": "own"} | dict.fromkeys(times, "moment") | changed
    copy_row(model, row.pk, source, **changed)


def fill(world):
    """Copy rows of the organization's own wallet, and a hosted wallet."""
    own = {"wallet__tenant": world.tenant, "wallet__is_organization": True}
    met = Connection.objects.filter(state="Connected", connectionless=False, **own)
    row = met.latest("pk")
    key = {"id": "own_key", "verkey": verkey_sql("own_key")}
    copy(Key, row.my_key, **key)
    changed = {"connection_id": "own::text", "my_key_id": "own_key", "token": "''"}
    changed |= {"their_key": verkey_sql("own"), "thread_id": "own::text"}
    changed |= {"invitation_key_id": "NULL", "name": "'Alice ' || n"}
    copy(Connection, row, **changed)
    exchange = {"connection_id": "own", "thread_id": "own::text"}
    for state, odd, place in (("Issued", 0, "n + 1000"), ("Offered", 1, "NULL")):
        found = Credential.objects.filter(state=state, connection__in=met, **own)
        some = f"numbered WHERE n % 2 = {odd}"
        changed = exchange | {"revocation_index": place}
        copy(Credential, found.latest("pk"), some, **changed)
    proof = Verification.objects.filter(state="Accepted", **own).latest("pk")
    exchange |= dict.fromkeys(("presentation", "proof", "checks"), "NULL")
    exchange["policy_id"] = f"'{world.ids['policy_id']}'"
    copy(Verification, proof, is_valid="n % 10 > 0", **exchange)
    text = BasicMessage.objects.filter(connection__in=met).latest("pk")
    copy(BasicMessage, text, connection_id="own")
    fill_others(world)


def fill_others(world):
    event = Event.objects.filter(tenant=world.tenant, is_example=False)
    named = {"object_key": "own", "sequence": "1"}
    copy(Event, event.latest("pk"), object_id="own::text", **named)
    delivery = Delivery.objects.get(pk=world.ids["delivery_id"])
    copy(Delivery, delivery, event_id="own", status="'done'", **named)
    hosted = Wallet.objects.get(pk=world.ids["wallet_id"])
    copy(Wallet, hosted, wallet_id="own::text", owner_name="'Alice ' || n")
    sent = OutboundMessage.objects.latest("pk")
    changed = {"recipient_key": "own::text", "status": "'done'"}
    copy(OutboundMessage, sent, connection_id="own", **changed)
    copy(AuditEntry, AuditEntry.objects.latest("pk"))


@pytest.fixture
def filled(world):
    """Return the world, and the number of statements of each page before the fill."""
    for number in range(3):
        world.add_objects(number)
    few = {address: len(opens(world, who, address)[1]) for who, address in pages(world)}
    execute_statements(
        "SET statement_timeout = 0; SET session_replication_role = replica"
    )
    execute_statements(NUMBERED.format(count=MANY))
    fill(world)
    execute_statements("RESET session_replication_role; RESET statement_timeout")
    execute_statements("DROP TABLE numbered")
    execute_statements("VACUUM (ANALYZE)")
    return world, few


def pages(world):
    return [
        (who, address)
        for who, address in world.addresses()
        if "sort=size" not in address
    ]


def opens(world, who, address):
    """Return the response, and `(sql, parameters, seconds)` of each statement."""
    statements = []

    def record(execute, sql, params, many, context):
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            if sql not in BOUNDS and READS.match(sql):
                statements.append((sql, params, time.perf_counter() - started))

    with connection.execute_wrapper(record):
        response = getattr(world, who).get(address, headers=HTML)
    assert response.status_code == 200, address
    return response, statements


def tables_read_whole(sql, params):
    """Return the large tables that a statement would read from end to end.

    Not those of which some rows are enough: below a LIMIT, or to see if there is one.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        [[plan]] = cursor.fetchall()
    plan = plan if isinstance(plan, list) else json.loads(plan)
    return {
        node["Relation Name"]
        for node in walk(plan[0]["Plan"])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in TABLES
    }


def walk(node):
    """Yield the nodes that read all of their rows."""
    if node["Node Type"] == "Limit" or "Subplan Name" in node:
        return
    yield node
    for inner in node.get("Plans", []):
        yield from walk(inner)


def test_every_page_is_as_it_was_with_few_rows(filled):
    world, few = filled
    for model in COPIED:
        assert model._base_manager.count() >= MANY, model
    found = {}
    for who, address in pages(world):
        for _ in range(TRIES):
            response, statements = opens(world, who, address)
            slowest = max(statements, key=lambda one: one[2], default=("", (), 0))
            if slowest[2] <= MAX_SECONDS:
                break
        wrong = [
            f"{', '.join(tables)} read whole by {sql}"
            for sql, params, _ in statements
            if (tables := tables_read_whole(sql, params))
        ]
        if len(statements) > few[address]:
            wrong.append(f"{len(statements)} statements, not {few[address]}")
        if len(response.content) > MAX_BYTES:
            wrong.append(f"{len(response.content)} bytes")
        if slowest[2] > MAX_SECONDS:
            wrong.append(f"{slowest[2]:.2f} s: {slowest[0]}")
        if wrong:
            found[address] = wrong
    assert not found, "\n\n".join(f"{page}: {one}" for page, one in found.items())
