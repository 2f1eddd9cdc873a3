"""A call that cannot be undone refuses what it does not read, on every path."""

import re

import pytest

from core.database.base import fetch_rows
from credentials.models import Bulk, Credential
from tests.core.api.test_generated import PRIVATE, example_of
from tests.support.errors import assert_error
from tests.support.world import caller, filled

pytestmark = pytest.mark.django_db(transaction=True)
NAMED = re.compile(
    r"delete|remove|revoke|purge|rotate|changeProviderTenantKeys|Bulk$|^end|createPersonalLink"
)
READS = ("get", "head", "options")
DONE = [
    row
    for row in PRIVATE
    if row[0] == "delete"
    or (row[0] not in READS and NAMED.search(row[2]["operationId"]))
]
# The prefixes of each API, by the one that its OpenAPI document has.
PREFIXES = {
    "/provider/v1/": ("/provider/v1/", "/management/v1/"),
    "/custodian/v1/api/": (
        "/api/",
        "/custodian/api/",
        "/custodian/v1/api/",
        "/wallet/v1/api/",
    ),
    "/": ("/", "/agency/v1/", "/credentials/v1/"),
}


def spellings(path):
    """The path below each prefix under which it is served."""
    prefix = next(one for one in PREFIXES if path.startswith(one))
    return [one + path.removeprefix(prefix) for one in PREFIXES[prefix]]


def versions():
    """Of all rows that calls change: transactions that wrote, by table."""
    tables = (
        "connections_connection", "credentials_credential", "credentials_bulk",
        "credentials_credentialdefinition", "verifications_verification",
        "verifications_verificationpolicy", "verifications_kiosk", "wallets_wallet",
        "webhooks_webhook", "tenants_tenant", "sandbox_simulatedholder",
        "webwallet_personallink",
    )  # fmt: skip
    return {
        table: fetch_rows(f"SELECT id, xmin::text FROM {table} ORDER BY id", [])
        for table in tables
    }


def test_parameters_that_nobody_reads_are_400_and_nothing_is_done(world):
    assert len(DONE) > 25
    ids = world.api_ids()
    before = versions()
    for method, path, operation in DONE:
        asking = caller(world.faber, path)
        for spelling in spellings(path):
            address = filled(spelling, ids)
            for query in ("dryrun=true", "dryrun=", "DRYRUN=true"):
                joint = "&" if "?" in address else "?"
                refused = asking.send(
                    method, f"{address}{joint}{query}", example_of(operation)
                )
                assert_error(refused, 400, "invalid_request")
                assert query.partition("=")[0] in refused.json()["errors"]
    assert versions() == before


def test_a_parameter_that_comes_twice_is_400(world):
    ids = world.known_ids()
    path = f"/api/wallets?walletId=other&walletId={ids['walletId']}"
    refused = world.faber.send("delete", path)
    assert_error(refused, 400, "invalid_request")
    assert "once" in refused.json()["errors"]["walletId"][0]
    path = "/credentials/revoke?dryRun=true&dryRun=false"
    assert_error(world.faber.send("post", path, {}), 400, "invalid_request")


def test_unknown_members_of_a_revocation_revoke_nothing(world):
    issued = Credential.objects.filter(state="Issued")
    before = issued.count()
    asked = {"definitionId": world.definition["definitionId"]}
    for name in ("issuedafter", "dryRun", "credentialIDs", "x" * 5000):
        refused = world.faber.send("post", "/credentials/revoke", asked | {name: ["x"]})
        assert_error(refused, 400, "invalid_request")
        assert len(refused.content) < 2000
    assert before and issued.count() == before
    # Null counts as absent, and whoever misspells a filter elsewhere reads so.
    listed = world.faber.send("get", "/credentials?stat=x&stat=y")
    assert listed.headers["X-Ignored-Parameters"] == "stat"


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_unknown_members_of_a_row_offer_nothing(world, kind):
    good = '{"credentialValues": {"name": "A", "age": "1"}, "note": null}'
    bad = good.replace('"note": null', '"connectionID": "a"')
    path = f"/credentials/bulk?definitionId={world.definition['definitionId']}"
    rows = f"[{good}, {bad}]" if kind == "application/json" else f"{good}\n{bad}"
    before = Bulk.objects.count()
    for query in ("", "&dryRun=true"):
        refused = world.faber.client.post(
            path + query, data=rows, content_type=kind, headers=world.faber.headers
        )
        assert_error(refused, 400, "invalid_request")
        assert "Row 2" in refused.json()["message"]
    assert Bulk.objects.count() == before
