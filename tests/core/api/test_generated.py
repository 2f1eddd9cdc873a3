"""Tests generated from the OpenAPI schema: new routes are covered at once."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from drf_spectacular.generators import SchemaGenerator

from tests.support.world import caller, filled

pytestmark = pytest.mark.django_db(transaction=True)
PUBLIC = {"Health", "Ledger"}
SPARE = "0196f3a2-2222-7000-8000-000000000001"
SHARED = "{networkId}"  # of no one organization
LISTS = (
    "/connections", "/credentials", "/verifications", "/verificationPolicies",
    "/kiosks", "/webhooks", "/definitions/verifications", "/provider/v1/tenants",
)  # fmt: skip
HOSTILE = [
    "[" * 5000, "{", "\x00", b"\xff\xfe", "null", "[]", "1", '"text"',
    json.dumps([[]] * 20),
    '{"a": "\\u0000", "name": "\\ud800"}',
    json.dumps({"name": 10**19, "version": [], "attributes": {}, "walletId": 1}),
    json.dumps({"name": {"a": "b"}, "definitionId": None, "connectionId": ["x"]}),
    json.dumps({"definitionId": "x" * 5000, "connectionId": "\u202e",
                "credentialValues": "a"}),
    json.dumps({"name": "n", "version": "1",
                "predicates": [{"predicateValue": 2**31}]}),
    json.dumps({"name": "n", "version": "1",
                "attributes": [None, 1, "x", {"policyName": {}}]}),
    json.dumps([{"policyName": 1, "credentialId": {}}, None, "x"]),
]  # fmt: skip


DOCUMENT = SchemaGenerator().get_schema(request=None, public=True)
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [
    (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
PRIVATE = [row for row in OPERATIONS if not PUBLIC & set(row[2]["tags"])]
READ = [
    path
    for method, path, operation in PRIVATE
    if method == "get"
    and "application/json" in operation["responses"]["200"]["content"]
]


@pytest.fixture
def ids(world):
    return world.api_ids()


def example_of(operation):
    content = operation.get("requestBody", {}).get("content", {})
    examples = content.get("application/json", {}).get("examples", {})
    return next((one["value"] for one in examples.values()), None)


def test_without_keys_every_operation_is_401(client):
    for method, path, operation in PRIVATE:
        response = getattr(client, method)(re.sub(r"\{\w+\}", SPARE, path))
        assert response.status_code == 401, f"{method} {path}"
        assert response.json()["code"] == "unauthorized"
        assert "401" in operation["responses"]


def test_with_another_organizations_ids_every_operation_is_404_and_changes_nothing(
    world, ids
):
    faber, acme = world.faber, world.acme
    before = snapshot(faber, ids)
    for method, path, operation in PRIVATE:
        if "{" in path.replace(SHARED, ""):
            asking = caller(acme, path)
            response = asking.send(method, filled(path, ids), example_of(operation))
            assert response.status_code == 404, f"{method} {path}: {response.content}"
            assert "404" in operation["responses"]
    assert snapshot(faber, ids) == before
    for path in LISTS:
        assert caller(acme, path).get(path) == []


def snapshot(faber, ids):
    """What Faber sees of its own, but for cursors, which look different each time, and
    for the minute in which a key was used.
    """
    kinds = ("connection", "credential", "verification")
    paths = [path for path in READ if "{" not in path]
    paths += [f"/api/{ids['walletId']}/{kind}s" for kind in kinds]
    seen = {path: caller(faber, path).get(path) for path in paths}
    for event in seen["/events"]:
        del event["cursor"]
    for key in seen["/keys"]:
        for name in ("lastUsedAtUtc", "updatedAtUtc"):
            key.pop(name, None)
    return seen


def test_ids_of_another_organization_in_a_body_are_404(world, ids):
    acme = world.acme
    body = {"definitionId": ids["definitionId"], "connectionId": ids["connectionId"]}
    assert acme.send("post", "/credentials", body).status_code == 404
    body["connectionId"] = acme.invites()["connectionId"]
    assert acme.send("post", "/credentials", body).status_code == 404


@pytest.mark.slow
def test_hostile_bodies_and_queries_are_never_a_server_error(world, ids):
    faber = world.faber
    for method, path, _ in PRIVATE:
        if method in ("post", "put", "patch"):
            for body in HOSTILE:
                response = getattr(faber.client, method)(
                    filled(path, ids),
                    data=body,
                    content_type="application/json",
                    headers=caller(faber, path).headers,
                )
                assert response.status_code < 500, f"{method} {path} {body!r:.80}"
        elif method == "get":
            for query in (
                "?state=%00",
                "?state=x",
                "?connectionId=%ff",
                "?definitionId=" + "x" * 900,
            ):
                response = caller(faber, path).send("get", filled(path, ids) + query)
                assert response.status_code < 500, f"{method} {path} {query}"


def test_every_operation_is_documented_whole():
    for method, path, operation in OPERATIONS:
        assert operation["summary"] and operation["tags"], f"{method} {path}"
        body = operation["responses"]["200"].get("content", {}).get("application/json")
        assert body is None or body["schema"], f"{method} {path}"
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            assert example_of(operation) is not None, f"{method} {path}"


def test_the_number_of_queries_of_a_list_does_not_grow(world, ids):
    faber = world.faber
    paths = [filled(path, ids) for path in READ]
    for path in paths:  # the first may write that values were read, as its key tells
        caller(faber, path).get(path)
    before = {path: queries(faber, path) for path in paths}
    world.grow()
    assert {path: queries(faber, path) for path in paths} == before


def queries(faber, path):
    asking = caller(faber, path)
    asking.get(path)  # what it caches
    with CaptureQueriesContext(connection) as captured:
        asking.get(path)
    return len(captured)
