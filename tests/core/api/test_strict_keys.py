"""Lists by a strict key refuse filters that they do not know, on paths without prefix."""

import json

import pytest
from django.core.management import call_command

from core.api.ignored_members import MAX_NAMES
from tenants.models import ApiKey, AuditEntry
from tests.core.api.test_generated import PRIVATE
from tests.support.errors import assert_error
from tests.support.people import Api
from tests.support.world import filled

pytestmark = pytest.mark.django_db(transaction=True)
PROVIDER, WALLET = "/provider/v1/", "/custodian/v1"
LISTS = [
    (path.removeprefix(WALLET), operation)
    for method, path, operation in PRIVATE
    if method == "get"
    and not path.startswith(PROVIDER)
    and operation["operationId"].startswith("list")
]


def strict(organization):
    _, token = ApiKey.issue("access_token", organization.tenant, "Strict", strict=True)
    return Api(token, organization.made.subscription_key)


def test_every_list_refuses_unknown_and_repeated_filters(world):
    api, ids = strict(world.faber), world.api_ids()
    assert len(LISTS) > 20
    for path, operation in LISTS:
        address = filled(path, ids)
        assert api.send("get", address).status_code == 200, path
        refused = api.send("get", f"{address}?stat=&State=Issued")
        assert_error(refused, 400, "invalid_request")
        assert list(refused.json()["errors"]) == ["stat", "State"]
        known = [
            one["name"]
            for one in operation.get("parameters", ())
            if one["in"] == "query"
        ]
        # All that the document names is known, empty ones too.
        every = "&".join(f"{name}=" for name in known)
        for start in range(0, len(known), MAX_NAMES):
            some = "&".join(f"{name}=&{name}=" for name in known[start:][:MAX_NAMES])
            refused = api.send("get", f"{address}?{some}").json()["errors"]
            assert refused.keys() == {*known[start:][:MAX_NAMES]}, path
            assert {*map(str, refused.values())} == {"['Give it once.']"}
        assert api.send("get", f"{address}?{every}").status_code == 200, path


def test_all_else_is_as_lenient_as_before(world):
    api, ids = strict(world.faber), world.api_ids()
    one = filled("/connections/{connectionId}", ids)
    for path in (
        "/agency/v1/connections", "/credentials/v1/connections", one,
        filled("/custodian/v1/api/{walletId}/connections", ids),
        filled("/wallet/v1/api/{walletId}/connections", ids),
    ):  # fmt: skip
        assert api.send("get", f"{path}?stat=x&stat=y").status_code == 200, path
    for path, _ in LISTS:
        listed = world.faber.send("get", f"{filled(path, ids)}?stat=x&stat=y")
        assert listed.status_code == 200, path


def test_a_next_page_of_a_strict_list_is_read(faber):
    api = strict(faber)
    faber.invites()
    faber.invites()
    link = api.send("get", "/connections?limit=1&sort=createdAt").headers["Link"]
    path = link.partition(">")[0].partition("/connections")[2]
    assert len(api.get(f"/connections{path}")) == 1


def test_keys_are_made_strict_and_stay_so(faber):
    made = faber.post("/keys", {"name": "Desk", "strict": True})
    assert made["strict"] and "strict" not in faber.post("/keys", {"name": "Till"})
    listed = {one["name"]: one.get("strict") for one in faber.get("/keys")}
    assert (listed["Desk"], listed["Till"]) == (True, None)
    key = ApiKey.objects.get(pk=made["keyId"])
    assert key.rotate()[0].strict
    assert AuditEntry.objects.get(object_id=key.pk).details["strict"] is True
    body = {"name": "Sub", "kind": "subscription_key", "strict": True}
    refused = faber.send("post", "/keys", body)
    assert_error(refused, 400, "invalid_request")


def test_the_command_makes_a_strict_token(transactional_db, stored_keys, capsys):
    call_command("create_organization", "Faber", "--strict", "--json")
    made = json.loads(capsys.readouterr().out)
    token = ApiKey.find_live("access_token", made["accessToken"])
    assert token.strict and ApiKey.objects.filter(strict=True).count() == 1
