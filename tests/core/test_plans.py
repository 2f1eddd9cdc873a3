"""The plans of statements that run for every call or every few seconds.

Web processes prepare their statements: then PostgreSQL may plan once for whatever
parameters (a generic plan). Workers do not, so theirs are planned with the values.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection, models, transaction
from django.utils import timezone

from agency.ops.queues import read_queue
from connections.messaging.models import InboundMessage, OutboundMessage
from connections.models import Connection
from connections.protocols.handshakes import answered_connection, known_connection
from connections.transport import posting_queue
from credentials.models import Credential
from credentials.models.credential import automatic_definitions
from credentials.models.registry import RevocationRegistry
from credentials.revocation import unlisted_indices
from credentials.tasks import finish_what_was_left_behind
from tenants.lifecycle.api.organizations import with_issuer
from tenants.lifecycle.statistics import count_by_day, count_offers
from tenants.models import ApiKey, Tenant
from tests.factories import InboundMessageFactory
from tests.support import queues
from verifications.models import Verification
from wallets.models import Key, Wallet
from webhooks.delivery import claim, due, recovery
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Delivery
from webhooks.events import feed
from webhooks.events.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
Plan = dict[str, Any]
ROWS = 1000
NEW_ID = "gen_random_uuid()"


def multiply(model: type[models.Model], rows: int = ROWS, **different: str) -> None:
    """Copy one row many times. different: SQL for the columns that are not copied."""
    columns = [field.column for field in model._meta.concrete_fields]
    different = {"id": NEW_ID} | different
    values = (different.get(column, f'"{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    table = model._meta.db_table
    with connection.cursor() as cursor:
        # Copies refer to keys that do not exist.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} "
            f"FROM (SELECT * FROM {table} LIMIT 1) AS copied, generate_series(1, {rows}) AS n"
        )
        assert cursor.rowcount == rows, "there was a row to copy"
        cursor.execute("RESET session_replication_role")
        cursor.execute(f"ANALYZE {table}")


@contextmanager
def recording() -> Iterator[list[tuple[str, Any]]]:
    """Yield what is executed meanwhile, with the parameters."""
    found = []

    def record(execute, sql, params, many, context):
        found.append((str(sql), params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        yield found


def statements_of(function: Callable[[], object]) -> list[tuple[str, Any]]:
    """Return the queries of a function, with their parameters."""
    with recording() as found:
        function()
    reads = re.compile(r"\s*(SELECT|WITH)\b")
    return [one for one in found if reads.match(one[0]) and " SET " not in one[0]]


def generic_plan(sql: str, params: Any) -> Plan:
    """Return the plan of a prepared statement, for whatever parameters."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found[1] or str(found.start())
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    numbered = re.sub(r"%(?:s|\((\w+)\)s)", number, sql).replace("%%", "%")
    return explain("GENERIC_PLAN", numbered, None)


def plan(sql: str, params: Any) -> Plan:
    return explain("COSTS", sql, params)


def explain(option: str, sql: str, params: Any) -> Plan:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ({option}, FORMAT JSON) {sql}", params)
        [[found]] = cursor.fetchall()
    return (found if isinstance(found, list) else json.loads(found))[0]["Plan"]


def nodes(found: Plan) -> Iterator[Plan]:
    yield found
    for inner in found.get("Plans", []):
        yield from nodes(inner)


# The planner trusts these: ten thousand rows in each page, of which nothing is known.
AS_LARGE_TABLES = """
UPDATE pg_class SET
    relpages = CASE pg_relation_size(oid) WHEN 0 THEN 0 ELSE 1 END,
    reltuples = CASE pg_relation_size(oid) WHEN 0 THEN -1 ELSE 10000 END
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i');
DELETE FROM pg_statistic USING pg_class
WHERE starelid = pg_class.oid AND relnamespace = 'public'::regnamespace
"""


@contextmanager
def without_table_scans() -> Iterator[None]:
    """PostgreSQL reads a whole table, or a whole index, only where it finds no other.

    In a transaction that is rolled back, in which it takes all tables for large ones:
    after an automatic ANALYZE it would read a whole index of few rows.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(AS_LARGE_TABLES)
            cursor.execute("SET LOCAL enable_seqscan = off")
            # PostgreSQL sees that the files are small: reading them all costs little.
            cursor.execute("SET LOCAL random_page_cost = 4")
        yield
        transaction.set_rollback(True)


def read_without_index(found: Plan) -> set[str]:
    """Return the tables, or indexes, that a plan reads from one end to the other.

    An index of some rows, such as those that are pending, is meant to be read so.
    """
    return {
        node.get("Index Name") or node["Relation Name"]
        for node in nodes(found)
        if node["Node Type"] == "Seq Scan" or "Index" in node["Node Type"]
        if "Index Cond" not in node
    } - partial_indexes()


def index_names(condition: str, *values: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            f"WHERE {condition}",
            values,
        )
        return {name for [name] in cursor.fetchall()}


def partial_indexes() -> set[str]:
    return index_names("indpred IS NOT NULL")


def indexes_of(found: Plan, model: type[models.Model]) -> set[str]:
    """Return the indexes by which a plan reads a table; "none" for the whole table."""
    table = model._meta.db_table
    names = set()
    for node in nodes(found):
        if node.get("Relation Name") == table and "Bitmap" not in node["Node Type"]:
            names.add(node.get("Index Name", "none"))
        if node["Node Type"] == "Bitmap Index Scan":
            own = index_names("indrelid = %s::regclass", table)
            names |= {node["Index Name"]} & own
    return names


@pytest.fixture
def by_rows(monkeypatch):
    queues.deliver_by_rows(monkeypatch)


@pytest.fixture
def delivery(faber):
    """An organization with a webhook, to which one is pending."""
    faber.post("/webhooks", {"url": "https://office.example"})
    faber.hosts("Alice").known_as(faber)


@pytest.fixture
def objects(faber):
    """An organization with many objects: the path of one of each kind."""
    alice = faber.hosts("Alice")
    definition = faber.defines("name", "year")
    offered = faber.offers(alice, definition, {"name": "Alice", "year": "2026"})
    asked = faber.asks(alice, name="Name", attributes=[{"policyName": "name"}])
    digest = "sha256(n::text::bytea)"
    multiply(ApiKey, digest=digest, sha256=digest)
    keys = dict.fromkeys(("my_key_id", "invitation_key_id"), NEW_ID)
    texts = {"connection_id": f"{NEW_ID}::text", "token": "n::text"}
    multiply(Connection, their_key="n::text", inviter_key="n::text", **texts, **keys)
    for model in (Credential, Verification):
        multiply(model, thread_id=f"{NEW_ID}::text")
    return {
        Connection: f"/connections/{alice.known[faber][0]}",
        Credential: f"/credentials/{offered['credentialId']}",
        Verification: f"/verifications/{asked['verificationId']}",
    }


# By the table: the index that finds one row of it.
INDEXES = {
    ApiKey: "tenants_apikey_sha256_key",
    Connection: "one_connection_per_id",
    Credential: "credentials_credential_pkey",
    Verification: "verifications_verification_pkey",
}


def test_a_read_of_one_object_is_planned_once_and_by_indexes_for_any_parameters(
    faber, objects
):
    for model, path in objects.items():
        faber.get(path)
        statements = statements_of(lambda path=path: faber.get(path))
        for statement, table in zip(statements, (ApiKey, model), strict=True):
            assert indexes_of(generic_plan(*statement), table) == {INDEXES[table]}
            assert is_planned_once(*statement), statement[0]


def test_a_thread_and_both_sides_of_a_handshake_are_found_by_indexes(objects):
    """Partial ones: the condition is a constant in the statement."""
    wallet, asked = Connection.objects.first().wallet_id, {"@id": "any"}
    for model, query, parameters, index in (
        (Credential, automatic_definitions, ("a", "b"), "credential_by_thread"),
        (Connection, answered_connection, (wallet, "a", asked), "connection_by_peer"),
        (Connection, known_connection, (wallet, "a", asked), "connection_by_inviter"),
    ):
        [statement] = statements_of(partial(query.first, *parameters))
        assert indexes_of(generic_plan(*statement), model) == {index}


def is_planned_once(sql: str, params: Any) -> bool:
    """Whether PostgreSQL stops planning the statement for each of its executions.

    It compares the costs after five executions.
    """
    session = connection.connection
    session.prepare_threshold = 0
    try:
        with psycopg.Cursor(session) as cursor:
            for _ in range(10):
                cursor.execute(sql, params)
            cursor.execute(
                "SELECT generic_plans FROM pg_prepared_statements "
                "ORDER BY prepare_time DESC LIMIT 1",
                prepare=False,
            )
            [generic_plans] = cursor.fetchone()
    finally:
        session.prepare_threshold = None
    return generic_plans > 0


def test_what_is_due_is_found_among_many_done_rows_by_a_partial_index(
    by_rows, delivery, faber
):
    done = {"status": "'done'"}
    multiply(OutboundMessage, is_hosted="false", **done)
    multiply(InboundMessage, message_id="n::text", **done)
    multiply(Delivery, event_id=NEW_ID, **done)
    InboundMessageFactory(tenant=faber.tenant, origin=uuid4())
    looks = (
        (OutboundMessage, lambda: posting_queue.claim_due(4, [])),
        (InboundMessage, lambda: InboundMessage.claim(4, origin=None)),
        (InboundMessage, lambda: InboundMessage.claim_request(uuid4(), {}, [uuid4()])),
        (Delivery, lambda: claim.claim_due(4, 1)),
    )
    for model, look_for_work in looks:
        Delivery.objects.filter(event__tenant=faber.tenant).update(status="pending")
        statements = statements_of(look_for_work)
        found = set.union(*(indexes_of(plan(*one), model) for one in statements))
        assert found and found <= partial_indexes(), model


def test_the_deliveries_of_an_object_are_found_without_reading_all_of_its_webhook(
    delivery,
):
    """PostgreSQL expects hardly any pending one of each of very many webhooks."""
    new = {"event_id": NEW_ID, "object_key": NEW_ID}
    multiply(Delivery, webhook_id=NEW_ID, status="'done'", **new)
    multiply(Delivery, rows=300, **new)
    now = timezone.now()
    row = Delivery.pending().select_related("webhook").first()
    statements = [
        *statements_of(lambda: due.find_heads([(row.webhook, 1)])),
        (due.POSTPONE_SQL, {"heads": [row.pk], "now": now}),
    ]
    found = [
        {
            node["Alias"]: node["Index Name"]
            for node in nodes(plan(*statement))
            if node.get("Relation Name") == Delivery._meta.db_table
            if node["Node Type"] != "ModifyTable"
        }
        for statement in statements
    ]
    of_object = "deliveries_of_object"
    assert found == [
        {"webhooks_delivery": "deliveries_due", "earlier": of_object},
        {"head": "webhooks_delivery_pkey", "later": of_object},
    ]


def test_webhooks_with_pending_deliveries_are_found_without_reading_the_others(
    delivery,
):
    """The time to claim does not grow with the organizations that wait for nothing."""
    multiply(Webhook)
    looks = (
        lambda: claim.claim_due(4, 1),
        recovery.close_deliveries_of_disabled,
        lambda: read_queue(Delivery),
    )
    for look in looks:
        used = [indexes_of(plan(*one), Webhook) for one in statements_of(look)]
        assert "none" not in set.union(*used), used


def multiply_revoked(registry_id: str) -> None:
    """Copy a credential as revoked ones. registry_id: SQL, of `n`, as is each value."""
    now = "now()"
    multiply(
        Credential, role="'issuer'", state="'Revoked'", revocation_published_at=now,
        thread_id="n::text", revocation_registry_id=registry_id, revocation_index="n",
        issued_at=now, accepted_at=now,
    )  # fmt: skip


def test_revocations_of_one_registry_and_unpublished_ones_are_found_among_others(
    objects,
):
    multiply_revoked("'registry ' || n % 100")
    registry = RevocationRegistry(registry_id="registry 7")
    newest = {"revocationList": [0] * (ROWS + 1)}
    [of_one] = statements_of(lambda: unlisted_indices(registry, newest))
    assert indexes_of(plan(*of_one), Credential) == {"one_credential_per_place"}
    _, unpublished = statements_of(finish_what_was_left_behind)
    assert indexes_of(plan(*unpublished), Credential) == {"credential_unpublished"}


def test_a_feed_from_the_start_reads_no_more_than_its_page(faber):
    """Also where it looks for events with numbers of the time before a restore."""
    faber.invites()
    multiply(Event, object_key=NEW_ID)
    rows = feed.events_of(faber.tenant)
    for statement in statements_of(
        lambda: feed.read_page(rows, feed.FIRST_POSITION, limit=10)
    )[1:]:
        found = explain("ANALYZE, BUFFERS", *statement)
        assert indexes_of(found, Event) == {"events_as_they_settle"}
        blocks = found["Shared Hit Blocks"] + found["Shared Read Blocks"]
        assert blocks < 50, "of some 1,000; deleted rows of other tests count too"


# By the table: the index that has its newest rows of one organization or webhook, and
# the one that has those which changed last.
NEWEST = {Wallet: "wallets_wal_tenant__41053b_idx", Delivery: "deliveries_in_time"}
CHANGED = {
    Credential: "credentials_wallet__e34fb7_idx",
    Verification: "verificatio_wallet__912d11_idx",
}


def test_the_newest_of_an_organization_are_found_among_newer_ones_of_others(delivery):
    """Of half of all rows: the primary key would be read from its end."""
    wallet = {"wallet_id": f"{NEW_ID}::text", "is_organization": "false"}
    for model, column, unique in (
        (Wallet, "tenant_id", wallet),
        (Delivery, "webhook_id", {"event_id": NEW_ID}),
    ):
        first = model.objects.values_list(column, flat=True)[0]
        others = f"CASE WHEN n % 2 = 0 THEN copied.{column} ELSE '{uuid4()}' END"
        multiply(model, id="uuidv7()", **unique, **{column: others})
        newest = model.objects.filter(**{column: first}).order_by("-pk")[:101]
        [statement] = statements_of(lambda newest=newest: list(newest))
        assert indexes_of(plan(*statement), model) == {NEWEST[model]}


def test_the_first_key_of_a_wallet_with_many_is_found_by_an_index(faber):
    own = Wallet.of_organization(faber.tenant)
    verkey = f"left({NEW_ID}::text, 44)"
    multiply(Key, id="uuidv7()", verkey=verkey)
    multiply(Key, 2 * ROWS, id="uuidv7()", verkey=verkey, wallet_id=NEW_ID)
    for read in (
        lambda: own.public_key,
        lambda: list(with_issuer(Tenant.objects.filter(pk=faber.tenant.pk))),
    ):
        [statement] = statements_of(read)
        for planned in (plan, generic_plan):
            assert indexes_of(planned(*statement), Key) == {"keys_of_wallet"}


def test_the_days_of_an_organization_are_counted_from_its_last_changes(
    faber, objects, monkeypatch
):
    monkeypatch.setattr("tenants.lifecycle.statistics.MAX_CHANGED", 100)
    own = Wallet.of_organization(faber.tenant)
    first, *_ = statements_of(lambda: count_by_day(own, 7, timezone.now()))
    found = plan(*first)
    for model in (Credential, Verification):
        assert indexes_of(found, model) == {CHANGED[model]}


def test_offers_are_counted_and_what_waits_longest_is_found_by_indexes(
    faber, objects, monkeypatch
):
    monkeypatch.setattr("tenants.lifecycle.statistics.MAX_CHANGED", 100)
    own = Wallet.of_organization(faber.tenant)
    [statement] = statements_of(lambda: count_offers(own, 7, timezone.now()))
    found = plan(*statement)
    # All rows of the test wait, so that an index by their age has them as early.
    by_state_and_age = {
        Credential: {
            "credentials_wallet__d8d68f_idx",
            "credentials_wallet__6c603e_idx",
        },
        Verification: {
            "verificatio_wallet__06efd7_idx",
            "verificatio_wallet__9a562e_idx",
        },
    }
    for model, indexes in by_state_and_age.items():
        allowed = indexes | {CHANGED[model], INDEXES[model]}
        assert set() < indexes_of(found, model) <= allowed
