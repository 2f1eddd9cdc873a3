"""The local network keeps the contract of networks."""

from threading import Event

import pytest
from django.db import transaction

from credentials.ledgers import ledger_of
from credentials.ledgers.base import schema_id_of
from credentials.ledgers.published import PublishedObject
from tenants.lifecycle.provisioning import LOCAL, require_network
from tenants.models import Network
from tests.credentials.ledgers.contract import Contract, schema_of
from tests.support.aging import StoppedClock
from tests.support.races import (
    PATIENCE,
    at_once,
    during,
    error_codes,
    is_waited_for,
    threads,
    wait_until,
)
from wallets import keys


class TestLocal(Contract):
    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch):
        monkeypatch.setattr("credentials.revocation.time", StoppedClock())

    @pytest.fixture
    def network(self, transactional_db):
        return require_network(LOCAL)


@pytest.fixture
def ledger(transactional_db):
    return ledger_of(require_network(LOCAL))


def new_schema():
    return schema_of(keys.did_of(keys.verkey_of(keys.generate_seed())))


def publish(ledger, schema):
    with transaction.atomic():
        return ledger.publish_schema(schema)


def test_issuers_publish_while_another_one_does(ledger):
    """A first registry takes long, and belongs to the same transaction."""
    schemas = [new_schema(), new_schema()]
    published = during(
        lambda: ledger.publish_schema(schemas[0]), lambda: publish(ledger, schemas[1])
    )
    found = PublishedObject.objects.order_by("sequence")
    assert [row.object_id for row in found] == published


def test_of_one_issuers_schemas_with_one_id_one_is_published(ledger):
    schema = new_schema()
    others = [schema | {"attrNames": [name]} for name in ("a", "b", "c", "d")]
    answers = at_once(*[lambda one=one: publish(ledger, one) for one in others])
    assert error_codes(answers) == ["schema_exists"] * 3
    assert PublishedObject.objects.get().object_id in answers


def test_nobody_publishes_while_the_whole_network_is_locked(ledger):
    """Version 0.1.0 locks it so, and an import."""
    schema = new_schema()

    def lock():
        with transaction.atomic():
            Network.objects.select_for_update().get()
            PublishedObject.objects.create(
                network=ledger.network,
                kind="schema",
                object_id=schema_id_of(schema),
                sequence=2**30,
                body=schema,
            )
            locked.set()
            wait_until(is_waited_for)

    locked = Event()
    _, found = threads(
        [lock, lambda: (locked.wait(PATIENCE), publish(ledger, schema))[1]]
    )
    assert found == schema_id_of(schema) == PublishedObject.objects.get().object_id
