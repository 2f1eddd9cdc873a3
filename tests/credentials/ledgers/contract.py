"""What every adapter of a network must do: the same tests for all (see test_local.py).

Subclasses give the fixture `network`. Objects are real: stored keys, relabelled for
new schemas.
"""

import time
from contextlib import nullcontext
from itertools import count

import pytest
from django.db import transaction

from core.errors import Conflict
from credentials import revocation
from credentials.ledgers import ledger_of
from credentials.registries import make_registry, publish_registry
from tenants.lifecycle.provisioning import create_organization
from tests.support import keys as stored
from tests.support.processes import eventually
from wallets import anoncreds, keys
from wallets.models import Wallet

numbers = count(1)
LATER = 2**40
PLACES = 5


class Contract:
    @pytest.fixture
    def registry(self, network):
        return ledger_of(network)

    @pytest.fixture
    def did(self, network, stored_keys):
        """Of an organization that may publish."""
        return Wallet.of_organization(
            create_organization("Faber", network_id=network.pk).tenant
        ).did

    @pytest.fixture
    def writing(self, registry):
        """Where publishing belongs: in a transaction, or outside of any."""
        return nullcontext if registry.is_remote else transaction.atomic

    @pytest.fixture
    def schema(self, registry, writing, did):
        body = schema_of(did)
        with writing():
            return registry.publish_schema(body), body

    @pytest.fixture
    def definition(self, registry, writing, schema):
        made = definition_of(*schema)
        with writing():
            return registry.publish_definition(made.public, "first"), made

    @pytest.fixture
    def revocable(self, registry, writing, definition):
        """(id, registry) with its first list."""
        definition_id, made = definition
        with_places = make_registry(definition_id, made.public, 0, PLACES)
        with writing():
            return publish_registry(registry, made.public, with_places), with_places

    def test_a_did_may_be_registered_once(self, registry, did, writing):
        # The validator that answers may be behind those that took the write
        eventually(lambda: registry.did_role(did).is_registered, 10)
        with pytest.raises(Conflict) as taken, writing():
            registry.publish_did(did, keys.verkey_of(keys.generate_seed()))
        assert taken.value.code == "did_taken"

    def test_the_endpoint_of_a_did_is_found_as_it_was_published(
        self, registry, did, writing
    ):
        eventually(lambda: registry.did_role(did).is_registered, 10)
        before = registry.did_service(did)
        assert (keys.did_of(before.verkey), before.endpoint) == (did, "")
        for endpoint in ("https://one.example/didcomm", "https://two.example/didcomm"):
            for _ in range(2):
                with writing():
                    registry.publish_endpoint(did, endpoint)
            wanted = (before.verkey, endpoint, [])
            eventually(lambda wanted=wanted: registry.did_service(did) == wanted, 10)
            assert registry.did_service(did) == wanted

    def test_the_service_of_a_did_that_is_not_there_is_none(self, registry):
        absent = keys.did_of(keys.verkey_of(keys.generate_seed()))
        assert registry.did_service(absent) is None
        assert registry.did_service("nothing at all") is None

    def test_a_schema_is_found_as_it_was_published(self, registry, schema):
        schema_id, body = schema
        assert schema_id == f"{body['issuerId']}:2:{body['name']}:1.0"
        assert registry.schema(schema_id) == body

    def test_a_schema_is_published_once_and_no_other_of_its_name(
        self, registry, writing, schema
    ):
        schema_id, body = schema
        with writing():
            assert registry.publish_schema(body) == schema_id
        with pytest.raises(Conflict) as refused, writing():
            registry.publish_schema(body | {"attrNames": ["Full Name", "year"]})
        assert refused.value.code == "schema_exists"

    def test_a_definition_is_found_as_it_was_published(
        self, registry, schema, definition
    ):
        definition_id, made = definition
        found = registry.definition(definition_id)
        assert found["schemaId"] == schema[0] and found["tag"] == "first"
        assert found["value"] == made.public["value"]
        assert definition_id.startswith(f"{found['issuerId']}:3:CL:")

    def test_a_tag_is_given_once(self, registry, writing, schema, definition):
        assert registry.has_tag(schema[1]["issuerId"], schema[0], "first")
        assert not registry.has_tag(schema[1]["issuerId"], schema[0], "second")
        another = definition_of(*schema, size=3)
        with pytest.raises(Conflict) as taken, writing():
            registry.publish_definition(another.public, "first")
        assert taken.value.code == "tag_taken"

    def test_a_registry_and_its_first_list_are_found(
        self, registry, definition, revocable
    ):
        registry_id, made = revocable
        found = registry.revocation_registry(registry_id)
        assert registry_id.endswith(f":4:{definition[0]}:CL_ACCUM:0")
        assert made.public["value"].items() <= found["value"].items()
        assert revoked(registry.status_list(registry_id, LATER)) == []

    def test_the_newest_list_up_to_a_time_is_found(
        self, registry, writing, definition, revocable
    ):
        registry_id, made = revocable
        first = registry.status_list(registry_id, LATER)
        publish(registry, writing, definition[1], made, first, [1, 3])
        second = registry.status_list(registry_id, LATER)
        publish(registry, writing, definition[1], made, second, [2])
        third = registry.status_list(registry_id, LATER)
        assert first["timestamp"] < second["timestamp"] < third["timestamp"]
        for newest, indices in ((first, []), (second, [1, 3]), (third, [1, 2, 3])):
            found = registry.status_list(registry_id, newest["timestamp"])
            assert found == newest and revoked(found) == indices
        between = registry.status_list(registry_id, third["timestamp"] - 1)
        assert revoked(between) == [1, 3]
        assert registry.status_list(registry_id, first["timestamp"] - 1) is None

    def test_what_is_not_there_is_none(self, registry, did, subtests):
        for absent in (
            f"{did}:2:nothing:1.0",
            f"{did}:3:CL:999999:nothing",
            f"{did}:4:{did}:3:CL:999999:nothing:CL_ACCUM:0",
            "did:web:example.com",
            "nothing\0at all",
            "x" * 400,
        ):
            with subtests.test(absent):
                assert registry.schema(absent) is None
                assert registry.definition(absent) is None
                assert registry.revocation_registry(absent) is None
                assert registry.status_list(absent, LATER) is None


def schema_of(did):
    name = f"Badge {next(numbers)} {time.time_ns()}"
    named = {"issuerId": did, "name": name, "version": "1.0"}
    return named | {"attrNames": ["Full Name", "level"]}


def definition_of(schema_id, schema, size=2):
    """A revocable one with stored keys."""
    names = schema["attrNames"] if size == 2 else ["a", "b", "c"]
    labelled = schema | {"attrNames": names}
    return stored.definition_like(
        schema_id, labelled, schema["issuerId"], "first", size == 2
    )


def publish(registry, writing, definition, made, newest, indices):
    """The next list, in a later second."""
    now = revocation.second_after(newest["timestamp"])
    following = anoncreds.update_status_list(
        definition.public, made.public, made.private, newest, indices, now
    )
    with writing():
        registry.publish_status_list(following)


def revoked(status_list):
    return [index for index, bit in enumerate(status_list["revocationList"]) if bit]
