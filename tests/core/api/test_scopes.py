"""What a key with few scopes may call, and what it sees: all operations of the document."""

import base64
import re
from html import unescape
from uuid import uuid4

import pytest

from tenants.models import ApiKey, AuditEntry, Membership, Scope
from tests.agency.studio.conftest import browser_with
from tests.core.api.test_generated import PRIVATE, example_of, snapshot
from tests.support.errors import assert_error
from tests.support.people import Api
from tests.support.world import Names, World, filled
from webhooks.events.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
SCOPED = [row for row in PRIVATE if "x-scope" in row[2]]
WALLET_API = "/custodian/v1"
PREFIXES = {  # by the documented one: the prefix, and the status of a missing scope
    WALLET_API: {WALLET_API: 409, "/custodian": 409, "/wallet/v1": 409, "": 403},
    "": {"": 403, "/agency/v1": 403, "/credentials/v1": 403},
}
NOTED = {
    path
    for method, path, operation in SCOPED
    if method == "patch" and operation["operationId"] != "updateWebhook"
}
NEEDLE = "Xq7needle"
NEEDLES = (NEEDLE, NEEDLE.lower())
BASE64 = re.compile(rb"[\w+/-]{24,}")


def with_scopes(organization, *scopes, prefix=""):
    """A client with a new access token of the organization that has these scopes."""
    token = ApiKey.issue("access_token", organization.tenant, "Few", scopes=scopes)[1]
    return Api(token, organization.made.subscription_key, prefix)


def places(path):
    """The path below each prefix, with the status of a missing scope there."""
    documented = WALLET_API if path.startswith(WALLET_API) else ""
    rest = path.removeprefix(documented)
    return {prefix + rest: status for prefix, status in PREFIXES[documented].items()}


def test_each_operation_of_an_organization_names_its_scope():
    for method, path, operation in PRIVATE:
        is_provider = path.startswith("/provider/")
        assert ("x-scope" in operation) != is_provider, f"{method} {path}"
    needed = {operation["x-scope"] for _, _, operation in SCOPED}
    assert needed == set(Scope.values) - {Scope.VALUES}  # it only adds to the others


@pytest.mark.slow
def test_each_operation_takes_its_own_scope_and_no_other(world):
    """Some 4,000 calls, with ids of another organization: they change nothing."""
    ids, calls = world.api_ids(), 0
    before = snapshot(world.faber, ids)
    keys = {scope: with_scopes(world.acme, scope) for scope in Scope.values}
    for method, path, operation in SCOPED:
        for place, missing in places(filled(path, ids)).items():
            for scope, asking in keys.items():
                calls += 1
                body = example_of(operation) if "{" in path else "["
                response = asking.send(method, place, body)
                called = f"{method} {place} with {scope}: {response.content}"
                if scope != operation["x-scope"]:
                    assert_error(response, missing, "missing_scope")
                    assert f"`{operation['x-scope']}`" in response.json()["message"]
                elif "{" in path.replace("{networkId}", ""):
                    assert_error(response, 404, "not_found")
                else:
                    assert response.status_code in (200, 400, 404, 409, 421), called
                    assert b"missing_scope" not in response.content, called
    assert calls > 3_900
    assert snapshot(world.faber, ids) == before


@pytest.mark.slow
def test_the_page_of_members_says_what_the_matrix_does(world):
    """By its table: the summary of each call, below the scope that opens it."""
    tenant, ids = world.faber.tenant, world.api_ids()
    page = browser_with("viewer", tenant).get(
        f"/studio/organizations/{tenant.pk}/members"
    )
    rows = unescape(page.text).split('<th scope="row" data-label="Scope"><code>')[1:]
    said = {
        row.split("</code>")[0]: set(re.findall("<li>(.*?)</li>", row)) for row in rows
    }
    assert list(said) == Scope.values
    acme = {scope: with_scopes(world.acme, scope) for scope in Scope.values}
    for method, path, operation in SCOPED:
        for scope, asking in acme.items():
            response = asking.send(method, filled(path, ids), "[")
            is_open = b"missing_scope" not in response.content
            assert is_open == (operation["summary"] in said[scope]), (path, scope)
    for row in rows:
        scope = row.split("</code>")[0]
        [givers] = re.findall('<td data-label="Who gives it">(.*?)</td>', row)
        assert ("Developer" in givers) == (
            Membership(role="developer").may_give({scope})
        )
        assert givers.startswith("Owner") and "Viewer" not in givers


def needles_in(content):
    """The needles in what was answered, also in messages that are written as base64."""
    texts = [content]
    for found in BASE64.findall(content):
        texts.append(base64.urlsafe_b64decode(found[: len(found) // 4 * 4]))
        texts.append(base64.b64decode(found[: len(found) // 4 * 4], b"-_"))
    return [one for one in NEEDLES if any(one.encode() in text for text in texts)]


@pytest.fixture
def haystack(stored_keys):
    """A world whose holder, messages, reasons and files have the needle in them."""
    world = World(Names(value=NEEDLE))
    faber, alice = world.faber, world.alice
    world.chat()
    world.said(faber, world.connection[0], f"I am {NEEDLE}")
    world.said(alice, world.connection[1], f"I am {NEEDLE}")
    offer = world.offered()
    alice.post(f"/credentials/{offer[1]}/decline", {"reason": f"Not {NEEDLE}"})
    asked = world.asked()
    alice.put(f"/verifications/{asked[1]}/decline", {"reason": f"Not {NEEDLE}"})
    link = world.wish | {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    ids = world.api_ids()
    for path in NOTED:
        notes = {"metadata": {"name": f"I am {NEEDLE}"}}
        faber.call("patch", filled(path, ids), notes)
    shared = faber.post("/credentials", link)
    alice.accepts_invitation(shared["offerData"])
    return world


@pytest.mark.slow
def test_no_answer_has_a_value_without_the_scope(haystack):
    """Each operation is called twice, with all scopes but `values` and with all."""
    faber = haystack.faber
    ids = haystack.api_ids() | {
        "bulkId": haystack.bulk({"credentialValues": haystack.values})
    }
    blind = with_scopes(faber, *(set(Scope.values) - {Scope.VALUES}))
    seen = set()
    # Deletions last, and of the wallet after what is in it.
    order = {"get": 0, "post": 1, "put": 2, "patch": 3, "delete": 4}
    for method, path, operation in sorted(
        SCOPED, key=lambda row: (order[row[0]], row[1])
    ):
        place, body = filled(path, ids), example_of(operation)
        for answer in (blind, faber):
            if operation["operationId"] in ("deleteTenant", "streamEvents"):
                continue
            response = answer.send(method, place, body)
            content = b"".join(response) if response.streaming else response.content
            found = needles_in(content)
            if answer is faber:
                seen |= {operation["operationId"]} if found else set()
            else:
                assert not found, f"{method} {path}: {content}"
    assert seen >= {
        "listCredentials", "getCredential", "listVerifications", "getVerification",
        "verifyVerification", "listMessages", "listWalletMessages", "listConnections",
        "listWalletCredentials", "getWalletCredential", "listWalletVerifications",
        "listWallets", "listVerificationPolicies", "listCredentialDefinitions",
        "listWalletConnections", "updateConnection",
    }, seen  # fmt: skip
    for event in Event.objects.all():  # what streams and webhooks get
        assert not needles_in(event.body.encode())


def test_a_link_to_an_offer_is_shown_to_whoever_makes_it_only(world):
    blind = with_scopes(world.faber, "read", "issue")
    made = blind.post("/credentials", world.wish)
    assert made["offerUrl"] and "offerData" not in made and "values" not in made
    path = f"/credentials/{made['credentialId']}"
    assert "offerUrl" not in blind.get(path) and "offerUrl" in world.faber.get(path)
    bulk = world.bulk({"credentialValues": world.values})
    path = f"/credentials/bulk/{bulk}/result"
    results = [b"".join(one.send("get", path)) for one in (world.faber, blind)]
    assert [b"/i/" in one for one in results] == [True, False]


def test_who_only_reads_does_not_learn_values_by_comparing(world):
    """Which cards fit a request of one's own making tells what they hold."""
    asked = world.asked()[1]
    wallet = f"/api/{world.alice.wallet_id}/verifications"
    path = f"{wallet}/{asked}/availableCredentials"
    form = {"verificationData": world.request_by_link()}
    own = f"{wallet}/fromData/availableCredentials"
    curious = with_scopes(world.faber, "read", "verify")
    assert_error(curious.send("get", path), 403, "missing_scope")
    refused = curious.send("post", own, form=form)
    assert_error(refused, 403, "missing_scope")
    assert with_scopes(world.faber, "wallets").get(path)


def test_a_kiosk_that_shows_values_needs_their_scope(world):
    desk = {"name": "Desk", "policyId": world.stored_policy}
    blind = with_scopes(world.faber, "verify")
    assert blind.post("/kiosks", desk)["url"]
    shown = desk | {"shownItems": ["Name"]}
    assert_error(blind.send("post", "/kiosks", shown), 403, "missing_scope")


def test_a_stored_answer_with_values_is_not_repeated_to_a_key_without(world):
    once = {"Idempotency-Key": str(uuid4())}
    body = world.wish | {"connectionId": world.connection[0]}
    first = world.faber.send("post", "/credentials", body, **once)
    assert "values" in first.json()
    blind = with_scopes(world.faber, "issue")
    again = blind.send("post", "/credentials", body, **once)
    assert_error(again, 422, "idempotency_key_reused")


def test_a_subscription_key_widens_nothing(world):
    few = with_scopes(world.faber, "read")
    for headers in (few.headers, {"Authorization": few.headers["Authorization"]}):
        few.headers = headers
        response = few.send("post", "/credentials/v1/connections", {})
        assert_error(response, 403, "missing_scope")
        assert few.send("get", "/credentials/v1/connections").status_code == 200


def test_reading_values_is_in_the_log_once_a_day_for_each_key_and_kind(world):
    few = with_scopes(world.faber, "read", "values")
    log = AuditEntry.objects.filter(action="values.read", actor_name__startswith="agt_")
    log = log.filter(details__name="Few")
    for _ in range(3):
        few.get(f"/credentials/{world.credential[0]}")
        few.get("/credentials")
    [entry] = log
    assert entry.details["values"] == "credentials"
    assert (entry.tenant_id, entry.object_type) == (world.faber.tenant.pk, "apikey")
    few.get("/verifications")
    few.get(f"/messages/connection/{world.connection[0]}")
    assert {one.details["values"] for one in log.all()} == {
        "credentials",
        "proofs",
        "messages",
    }
    ApiKey.objects.filter(name="Few").update(
        values_read_on={"credentials": "2026-01-31"}
    )
    few.get("/credentials")
    assert log.all().count() == 4
    with_scopes(world.faber, "read").get("/credentials")
    assert log.all().count() == 4


def test_reading_the_result_of_a_bulk_is_in_the_log(world):
    few = with_scopes(world.faber, "read", "values")
    log = AuditEntry.objects.filter(action="values.read", details__name="Few")
    row = {"credentialValues": world.values, "connectionId": world.connection[0]}
    bulk_id = world.bulk(row)
    assert not log.exists()
    b"".join(few.send("get", f"/credentials/bulk/{bulk_id}/result"))
    assert log.count() == 1


def test_a_key_without_scopes_in_its_row_has_all(world):
    key = ApiKey.objects.get(tenant=world.faber.tenant, kind="access_token")
    assert key.scopes is None and key.granted == set(Scope.values)
