"""The local network under contention, and what a rolled back write leaves: nothing."""

from functools import partial

import pytest
from django.db import transaction

from credentials import publishing
from credentials.ledgers import ledger_of
from credentials.ledgers.base import schema_id_of
from credentials.models import CredentialDefinition, PublishedObject, Schema
from credentials.models.schema import build_schema_body
from tests.support.errors import assert_error
from tests.support.races import at_once, error_codes

N = 8


def schema_of(organization, name="Dog", attributes=("name", "year")):
    return build_schema_body(organization.tenant, name, "1.0", attributes)


def create_schema(organization, *attributes, name="Dog"):
    return publishing.create_schema(organization.tenant, name, "1.0", list(attributes))


def define(organization, tag=None):
    body = schema_of(organization)
    given = organization.tenant, body, schema_id_of(body), tag
    wanted = publishing.DefinitionParameters(*given)
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
    made = at_once(*[partial(create_schema, faber, "name", "year")] * N)
    assert len({one.schema_id for one in made}) == 1
    assert PublishedObject.objects.filter(kind="schema").count() == 1
    assert create_schema(faber, "year", "name") == made[0], "in another order"


def test_of_different_schemas_with_one_name_at_once_one_is_made(faber):
    make = [partial(create_schema, faber, f"attribute {n}") for n in range(N)]
    assert error_codes(at_once(*make)) == ["schema_exists"] * (N - 1)


def test_every_write_has_a_number_of_its_own(faber):
    before = sequences()
    at_once(*[partial(create_schema, faber, "name", name=f"{n}") for n in range(N)])
    new = {*sequences()} - {*before}
    assert len(new) == N and min(new) > max(before)


def test_a_write_that_is_rolled_back_is_not_remembered(faber):
    registry, body = ledger_of(faber.tenant.network), schema_of(faber, "Cat")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        registry.publish_schema(body)
        assert registry.schema(schema_id_of(body))
        raise ZeroDivisionError
    with transaction.atomic():
        registry.publish_schema(body)
    assert PublishedObject.objects.filter(object_id=schema_id_of(body)).exists()


def test_a_definition_that_fails_leaves_no_schema(faber, monkeypatch):
    before = sequences()
    monkeypatch.setattr(CredentialDefinition, "save", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        define(faber)
    assert sequences() == before and not Schema.objects.exists()


def test_of_wallets_or_connections_with_one_id_an_organization_makes_one(faber, acme):
    ids = {"/api/wallets": "wallet_id", "/connections": "connection_id"}
    for path, name in ids.items():
        body = {f"{name.partition('_')[0]}Id": "rex"}
        acme.post(path, body)
        made = at_once(*[partial(faber.post, path, body)] * N)
        assert error_codes(made) == [f"{name}_taken"] * (N - 1)
        for organization in (faber, acme):
            [row] = organization.get(path)
            assert row.items() >= body.items()


@pytest.mark.parametrize(
    "path",
    [
        "schemas/none", "credential-definitions/none", "revocation-registries/none",
        "revocation-registries/none/status-list",
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_what_nobody_has_published_is_404(client, path):
    answer = client.get(f"/ledger/local/{path}")
    assert_error(answer, 404, "not_found")


def test_public_objects_are_served_as_they_were_made_and_for_ever(faber, client):
    definition = faber.defines("name", "level")
    path = f"/ledger/local/credential-definitions/{definition['definitionId']}"
    answer = client.get(path)
    assert answer.json()["id"] == definition["definitionId"]
    assert "immutable" in answer.headers["Cache-Control"]
    faber.delete(f"/definitions/credentials/{definition['definitionId']}")
    assert client.get(path).json() == answer.json()
    for secret in (b"private", b"p_safe"):
        assert secret not in answer.content
