"""Compiled statements have the results of Django's own."""

import re
from datetime import UTC
from functools import partial
from uuid import UUID

import psycopg
import pytest
from django.db import DataError, connection, models, transaction
from django.db.models import Model
from django.db.models.signals import post_init, pre_init
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from connections.api.exchanges import exchange_by_id, first_page_query
from connections.api.scopes import _connection_by_id
from connections.exchange import PARTIES, compiled_thread
from connections.messaging.pair_lock import _compiled_pair
from connections.models import Connection
from core.database import compiled_sql
from core.database.base import count_rows, fetch_rows
from core.database.compiled_sql import CompiledQuery, insert_row, update_rows
from credentials.api import serializers as of_credentials
from credentials.api.definitions import active_definition
from credentials.models import Credential
from credentials.models.credential import definition_with_schema
from tenants import vault
from tenants.models import Network, Provider, Record, Tenant
from tests.core import test_plans as plans
from verifications.api import serializers as of_verifications
from verifications.models import Verification
from wallets.models import Authority, Key

VALUES = {"name": "Alice", "level": "7"}

# A value of each type of parameters.
VALUE_OF = {
    UUID: lambda _: uuid7(),
    str: lambda text: text,
    bytes: lambda text: text.encode(),
    list: lambda text: [text, "another"],
    dict: lambda text: {"@id": text},
}


@pytest.fixture
def every_query(faber):
    """All compiled queries, with values of this story for their parameters."""
    alice, definition = faber.hosts("Alice"), faber.defines("name", "level")
    alice.receives(faber, definition, VALUES)
    faber.asks(alice, attributes=[{"policyName": "name"}])
    for model in (Credential, Verification):
        compiled_thread(model)
        for related in (PARTIES, ("connection",), ("connection", "wallet")):
            exchange_by_id(model, related)
    for page in first_page_queries():
        assert page in CompiledQuery.every
    _compiled_pair(Connection)
    return CompiledQuery.every


def first_page_queries():
    """The lists of a wallet's exchanges, of which nothing is asked."""
    own, over = ("wallet",), ("wallet", "connection__connection_id")
    credentials = partial(
        first_page_query, Credential, of_credentials.CredentialContract
    )
    verifications = partial(
        first_page_query, Verification, of_verifications.VerificationContract
    )
    return [
        credentials(of_credentials.WalletCredentialQuery, own),
        credentials(of_credentials.ConnectionCredentialQuery, over),
        verifications(of_verifications.WalletVerificationQuery, own),
        verifications(of_verifications.ConnectionVerificationQuery, over),
    ]


def content(row, above=()):
    """The columns and the joined rows of an object."""
    columns = {name: value for name, value in vars(row).items() if name != "_state"}
    return columns, {
        name: other and content(other, (*above, row))
        for name, other in row._state.fields_cache.items()
        if other not in above
    }


def test_each_compiled_query_has_the_sql_of_the_orm_and_can_use_indexes(
    every_query, subtests
):
    """Where PostgreSQL must not read a whole table, it finds an index for each one.

    Prepared statements are planned for unknown parameters, so a condition of a partial
    index must be a constant in them.
    """
    few_rows = {model._meta.db_table for model in (Network, Provider, Authority)}
    with plans.without_table_scans():
        cursor = psycopg.ClientCursor(connection.connection)
        for number, query in enumerate(every_query):
            kinds, planned = enumerate(query.types), query._plan
            values = [VALUE_OF[kind](f"value {index}") for index, kind in kinds]
            with subtests.test(number):
                expected = query.build(*values).query.sql_with_params()
                ours = cursor.mogrify(planned.sql, planned.parameters(values))
                assert ours == cursor.mogrify(*expected)
                found = plans.generic_plan(planned.sql, None)
                assert plans.read_without_index(found) <= few_rows, planned.sql


def test_no_compiled_query_joins_more_than_postgresql_puts_in_order(every_query):
    """Beyond `join_collapse_limit` it joins as written, and may read whole tables."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW join_collapse_limit")
        [[limit]] = cursor.fetchall()
    joined = {}
    for query in every_query:
        plan = query._plan
        # Without what stands between SELECT and FROM.
        _, joins, rest = plan.sql.partition(f'FROM "{plan.model._meta.db_table}"')
        joined[plan.sql] = len(re.findall(r'\b(?:FROM|JOIN) "', joins + rest))
    assert max(joined.values()) > 5, "they are counted"
    assert not [sql for sql, tables in joined.items() if tables > int(limit)]


def test_the_objects_are_those_of_the_orm(every_query, faber):
    connection_row = Connection.objects.get(role="inviter")
    peer = Connection.objects.get(role="invitee")
    credential = Credential.objects.get(role="holder")
    for query, values in (
        (_compiled_pair(Connection), (connection_row.pk, peer.pk)),
        (compiled_thread(Credential), (peer.pk, credential.thread_id)),
        (exchange_by_id(Credential, PARTIES), (credential.pk,)),
        (_connection_by_id, (faber.tenant.pk, connection_row.connection_id)),
        (definition_with_schema, (faber.tenant.pk, credential.definition_id)),
        (active_definition, (faber.tenant.pk, credential.definition_id)),
        *(
            (page, (peer.wallet_id, peer.connection_id)[: len(page.types)])
            for page in first_page_queries()
        ),
    ):
        rows = sorted(query.build(*values), key=lambda row: row.pk)
        assert rows
        compiled = sorted(query.all(*values), key=lambda row: row.pk)
        assert [content(row) for row in compiled] == [content(row) for row in rows]


def test_a_row_is_built_as_django_builds_it(faber):
    faber.hosts("Alice").meets(faber)
    few = Connection.objects.only("pk", "their_key")
    for rows in (Connection.objects.all(), few, Network.objects.all()):
        model = rows.model
        for signal in (pre_init, post_init):
            assert not signal.has_listeners(model), "a row is built without them"
        [*_, row] = rows
        names = [one for one in vars(row) if one != "_state"]
        fields = [one.attname for one in model._meta.concrete_fields]
        assert names == [one for one in fields if one in names]
        values = [vars(row)[name] for name in names]
        built = Model.from_db.__func__(model, "default", names, values)
        assert content(row) == content(built)
        assert vars(row._state) == vars(built._state)
        assert row.get_deferred_fields() == built.get_deferred_fields()


def test_times_are_those_of_the_orm(faber):
    [[stored]] = fetch_rows(
        "SELECT created_at FROM tenants_tenant WHERE id = %s", [faber.tenant.pk]
    )
    read = Tenant.objects.get(pk=faber.tenant.pk).created_at
    assert stored == read
    assert stored.tzinfo is read.tzinfo is UTC


def test_a_statement_that_fails_raises_what_django_raises(transactional_db):
    with pytest.raises(DataError), transaction.atomic():
        fetch_rows("SELECT 1 / %s", [0])
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            count_rows("SELECT %s", [1])
    connection.close()
    assert fetch_rows("SELECT %s", ["b"]) == [("b",)], "a new cursor"


@pytest.fixture
def key_query():
    """Makes a compiled query of keys, of the values of a function."""
    made = []

    def make(filters, *types):
        made.append(
            CompiledQuery(lambda *given: Key.objects.filter(**filters(*given)), *types)
        )
        return made[-1]

    yield make
    for query in made:
        CompiledQuery.every.remove(query)


def test_a_query_uses_each_of_its_parameters(key_query):
    query = key_query(lambda verkey, unused: {"verkey": verkey}, str, str)
    with pytest.raises(AssertionError, match="each parameter"):
        query.first("a", "b")


def test_a_query_builds_its_sql_once(faber, key_query):
    built = []

    def filters(verkey):
        built.append(verkey)
        return {"verkey": verkey}

    query, key = key_query(filters, str), Key.objects.first()
    with CaptureQueriesContext(connection) as captured:
        assert query.first(key.verkey).pk == key.pk
        assert query.first("unknown") is None
    assert (len(captured), len(built)) == (2, 1)


def test_an_inserted_row_is_the_one_that_save_would_insert(faber):
    tenant, rows = faber.tenant, []
    wallet = tenant.wallets.get(is_organization=True)
    lists = {"invitation": {"@id": "1"}, "their_routing_keys": ["a"]}
    for insert in (insert_row, partial(Record.save, force_insert=True)):
        row = Connection(tenant=tenant, wallet=wallet, role="inviter", **lists)
        row.connection_id = str(row.pk)
        insert(row)
        assert not row._state.adding
        stored = Connection.objects.filter(pk=row.pk).values().get()
        given = {name: getattr(row, name) for name in stored}
        assert stored == given
        rows.append(stored)
    differing = {"id", "connection_id", "created_at", "updated_at"}
    for name in rows[0].keys() - differing:
        assert rows[0][name] == rows[1][name]


def test_a_row_whose_unique_value_is_taken_is_not_inserted(faber):
    taken = Key.objects.get()
    tenant, verkey = faber.tenant, taken.verkey
    row = Key(tenant=tenant, wallet_id=taken.wallet_id, verkey=verkey, seed=b"")
    with transaction.atomic():
        assert insert_row(row, ignore_conflict=True) is False
        assert row._state.adding
        row.verkey = "another"
        assert insert_row(row, ignore_conflict=True) is True
    assert set(Key.objects.all()) == {taken, row}


def test_a_plain_value_is_what_the_field_makes_of_it():
    values = {UUID: uuid7(), str: "a", bool: True, bytes: b"a"}
    for name, kind in compiled_sql.PLAIN_TYPES.items():
        if name == "ForeignKey":
            field = Connection._meta.get_field("my_key")
        else:
            field = getattr(models, name)(null=True)
            assert field.get_db_prep_save(None, connection) is None
        made = field.get_db_prep_save(values[kind], connection)
        # Psycopg marks bytes by a class of its own.
        assert getattr(made, "obj", made) == values[kind]


def test_an_update_sets_what_the_orm_would_set(faber):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    row = Connection.objects.get(role="inviter")
    changes = {
        "spoken": {"issue-credential": ["2.0", "hlindy"]},
        "their_routing_keys": ["a", "b"],
        "left_at": timezone.now(),
        "other_key": row.my_key,
        "problem": "x",
    }
    where = {"id": row.pk, "sequence": row.sequence, "state": ["Connected", "Invited"]}
    assert update_rows(Connection, where, changes) == 1
    compiled = Connection.objects.filter(pk=row.pk).values().get()
    Connection.objects.filter(pk=row.pk).update(**changes)
    assert Connection.objects.filter(pk=row.pk).values().get() == compiled
    assert update_rows(Connection, where | {"sequence": 99}, changes) == 0
    assert update_rows(Connection, where | {"state": ["Invited"]}, changes) == 0


def test_an_array_and_a_sealed_column_are_updated(faber):
    alice, definition = faber.hosts("Alice"), faber.defines("name", "level")
    faber.offers(alice, definition, VALUES)
    row = Credential.objects.get(role="holder")
    values = vault.sealed_value(row, "values", {"name": "Bob"})
    changes = {"attribute_names": ["name"], "values": values}
    update_rows(Credential, {"id": row.pk}, changes)
    again = Credential.objects.get(pk=row.pk)
    assert again.attribute_names == ["name"]
    assert again.unsealed_values() == {"name": "Bob"}
