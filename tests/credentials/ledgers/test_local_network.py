"""The local network under contention, and what a rolled back write leaves: nothing."""

import pytest
from django.db import transaction

from agency.core.errors import Conflict
from credentials import publishing
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition, PublishedObject, Schema
from credentials.models.schema import build_schema_body
from tests.support.errors import error_of
from tests.support.races import at_once, error_codes

N = 8


def schema_of(organization, name="Dog", attributes=("name", "year")):
    return build_schema_body(organization.tenant, name, "1.0", attributes)


def schema_id(body):
    return f"{body['issuerId']}:2:{body['name']}:{body['version']}"


def define(organization, tag=None):
    body = schema_of(organization)
    wanted = publishing.DefinitionParameters(
        organization.tenant, body, schema_id(body), tag
    )
    return publishing.create_definition(wanted, publishing.prepare_definition(wanted))


def tags(made):
    return {one.tag for one in made if isinstance(one, CredentialDefinition)}


def sequences(network="local"):
    numbers = PublishedObject.objects.filter(network=network).order_by("sequence")
    return list(numbers.values_list("sequence", flat=True))


def test_of_many_definitions_with_one_tag_one_is_made(faber):
    made = at_once(*[lambda: define(faber, "2026")] * N)
    assert error_codes(made) == ["tag_taken"] * (N - 1)
    assert tags(made) == {"2026"}
    assert CredentialDefinition.objects.count() == 1


def test_definitions_without_a_tag_get_one_each(faber):
    made = at_once(*[lambda: define(faber)] * 4)
    assert tags(made) == {"default", "default-2", "default-3", "default-4"}
    assert Schema.objects.count() == 1


def test_the_same_schema_at_once_is_one_schema(faber):
    make = [
        lambda: publishing.create_schema(faber.tenant, "Dog", "1.0", ["name", "year"])
    ] * N
    assert len({one.schema_id for one in at_once(*make)}) == 1
    assert PublishedObject.objects.filter(kind="schema").count() == 1


def test_of_different_schemas_with_one_name_at_once_one_is_made(faber):
    make = [
        lambda n=n: publishing.create_schema(
            faber.tenant, "Dog", "1.0", [f"attribute {n}"]
        )
        for n in range(N)
    ]
    assert error_codes(at_once(*make)) == ["schema_exists"] * (N - 1)


def test_every_write_has_a_number_of_its_own_without_gaps(faber):
    make = [
        lambda n=n: publishing.create_schema(faber.tenant, f"Dog {n}", "1.0", ["name"])
        for n in range(N)
    ]
    at_once(*make)
    assert sequences() == list(range(1, N + 2))


def test_the_names_of_a_known_schema_may_come_in_another_order(faber):
    first = publishing.create_schema(faber.tenant, "Dog", "1.0", ["name", "year"])
    assert (
        publishing.create_schema(faber.tenant, "Dog", "1.0", ["year", "name"]) == first
    )


def test_a_write_that_is_rolled_back_is_not_remembered(faber):
    registry, body = ledger_of(faber.tenant.network), schema_of(faber, "Cat")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        registry.publish_schema(body)
        assert registry.schema(schema_id(body))
        raise ZeroDivisionError
    with transaction.atomic():
        registry.publish_schema(body)
    assert PublishedObject.objects.filter(object_id=schema_id(body)).exists()


def test_a_definition_that_fails_leaves_no_schema(faber, monkeypatch):
    before = sequences()
    monkeypatch.setattr(CredentialDefinition, "save", fails)
    with pytest.raises(ZeroDivisionError):
        define(faber)
    assert sequences() == before and not Schema.objects.exists()


def fails(*arguments, **options):
    raise ZeroDivisionError


def test_a_did_is_published_once(faber):
    did = schema_of(faber)["issuerId"]
    with pytest.raises(Conflict), transaction.atomic():
        ledger_of(faber.tenant.network).publish_did(did, "x")


def test_of_many_wallets_with_one_id_one_is_made(faber):
    make = [lambda: faber.post("/api/wallets", {"walletId": "rex"})] * N
    assert error_codes(at_once(*make)) == ["wallet_id_taken"] * (N - 1)
    assert [row["walletId"] for row in faber.get("/api/wallets")] == ["rex"]


def test_of_many_connections_with_one_id_one_is_made(faber):
    assert error_codes(at_once(*[lambda: faber.invites(connectionId="rex")] * N)) == [
        "connection_id_taken"
    ] * (N - 1)
    assert [row["connectionId"] for row in faber.get("/connections")] == ["rex"]


def test_two_organizations_may_use_the_same_ids(faber, acme):
    for organization in (faber, acme):
        organization.post("/api/wallets", {"walletId": "rex"})
        organization.invites(connectionId="rex")
    error = error_of(acme.invites, connectionId="rex")
    assert error.status == 409


def test_public_objects_are_served_as_they_were_made_and_for_ever(faber, client):
    definition = faber.defines("name", "level")
    path = f"/ledger/local/credential-definitions/{definition['definitionId']}"
    answer = client.get(path)
    assert answer.json()["id"] == definition["definitionId"]
    assert "immutable" in answer.headers["Cache-Control"]
    faber.delete(f"/definitions/credentials/{definition['definitionId']}")
    assert client.get(path).json() == answer.json()
    assert (
        "private" not in answer.content.decode()
        and "p_safe" not in answer.content.decode()
    )
