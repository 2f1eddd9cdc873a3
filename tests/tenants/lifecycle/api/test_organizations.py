"""Organizations in the API with their own token; networks; the wallet API's host."""

import base64
import uuid

import pytest

from credentials.models import PublishedObject
from tenants.models import ApiKey, AuditEntry, Tenant
from tests.support.errors import assert_error, error_of
from wallets import keys
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
SEED = "testseed0000000000000000000000C1"
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"


def did_of(tenant):
    return Wallet.objects.get(tenant=tenant, is_organization=True).did


def test_a_token_lists_its_own_organization_only(faber, acme):
    [mine] = faber.get("/tenants")
    assert mine["name"] == "Faber College"
    assert mine["network"] == {"networkId": "local", "networkName": "Local network"}
    assert "imageUrl" not in mine and "region" not in mine
    assert faber.get(f"/tenants/{mine['tenantId']}") == mine
    assert [one["name"] for one in acme.get("/tenants")] == ["Acme Corp"]


def test_the_extended_information_names_the_public_did_and_no_seed(faber, settings):
    [mine] = faber.get("/tenants")
    published = PublishedObject.objects.get(object_id=did_of(faber.tenant)).body
    assert mine["extendedInformation"] == {
        "issuerDid": published["did"],
        "issuerKey": published["verkey"],
        "agentDid": published["did"],
        "agentKey": published["verkey"],
        "agentServiceEndpoint": f"{settings.PUBLIC_URL}/didcomm",
        "transactionEndorsement": "Shared",
    }


def test_what_it_makes_belongs_to_the_provider_account_and_not_to_its_token(
    faber, provider
):
    logo = "https://b.example/logo.png"
    made = faber.post("/tenants", {"name": "Branch", "imageUrl": logo})
    assert made["imageUrl"] == logo
    assert [one["name"] for one in faber.get("/tenants")] == ["Faber College"]
    assert_error(error_of(faber.get, f"/tenants/{made['tenantId']}"), 404, "not_found")
    assert provider.get("/tenants") == [made]
    branch = provider.opens(made)
    assert [one["name"] for one in branch.get("/tenants")] == ["Branch"]
    assert branch.get("/connections") == []


def test_it_changes_its_settings_with_a_token_of_administration(faber, acme):
    [mine] = faber.get("/tenants")
    path, changes = f"/tenants/{mine['tenantId']}", {"ownWalletApi": True}
    changed = faber.put(path, changes | {"returnUrls": ["https://faber.example/"]})
    assert faber.get(path) == changed
    assert changed.pop("updatedAtUtc") > mine.pop("updatedAtUtc")
    assert changed == mine | changes | {"returnUrls": ["https://faber.example/"]}
    faber.get(f"/api/{mine['ownWalletId']}/credentials")
    entry = AuditEntry.objects.get(action="organization.changed")
    assert entry.tenant == faber.tenant and "own_wallet_api" in str(entry.details)
    assert_error(error_of(acme.put, path, {"name": "Ours"}), 404, "not_found")
    assert error_of(faber.put, path, {"ownWalletApi": "no way"}).status == 400
    narrow = ApiKey.objects.filter(tenant=faber.tenant, kind="access_token")
    narrow.update(scopes=["read", "links"])
    assert_error(error_of(faber.put, path, changes), 403, "missing_scope")


def test_a_seed_makes_the_did_once(faber):
    forms = (lambda one: one, base64_of, lambda one: base64_of(one)[:43])
    for number, form in enumerate(forms):
        seed = f"testseed0000000000000000000000C{number}"
        body = {"name": "Branch", "issuerSeed": form(seed)}
        made = faber.post("/tenants", body)
        expected = keys.did_of(keys.verkey_of(seed.encode()))
        assert made["extendedInformation"]["issuerDid"] == expected
        assert seed not in str(made)
        count = Tenant.objects.count()
        assert error_of(faber.post, "/tenants", body).code == "did_taken"
        assert Tenant.objects.count() == count


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


def test_the_old_spellings_are_read(faber):
    body = {"name": "Branch", "issuer_seed": SEED, "image_url": "http://b.example/a"}
    made = faber.post("/tenants", body | {"network_id": "local", "endorser_type": 1})
    assert made["imageUrl"] == "http://b.example/a"
    assert made["extendedInformation"]["transactionEndorsement"] == "Dedicated"


def test_a_chosen_id_and_a_region_are_kept(faber):
    chosen = str(uuid.uuid4())
    made = faber.post("/tenants", {"name": "B", "tenantId": chosen, "region": "Moon"})
    assert (made["tenantId"], made["region"]) == (chosen, "Moon")
    again = {"name": "C", "tenantId": chosen.upper()}
    assert_error(error_of(faber.post, "/tenants", again), 409, "tenant_id_taken")


WRONG = {
    "name": ["", "x" * 201, ["x"]],
    "imageUrl": ["javascript:alert(1)"],
    "networkId": ["nowhere"],
    "issuerSeed": ["short", "é" * 32, "A" * 40],
    "endorserType": ["Nobody", 3, True],
    "tenantId": ["chosen", 7],
    "region": ["x" * 101],
}


def test_a_bad_organization_is_400_and_names_the_field(faber):
    count = Tenant.objects.count()
    wrong = [(field, {field: value}) for field in WRONG for value in WRONG[field]]
    for field, change in [*wrong, ("name", {"name": None})]:
        error = error_of(faber.post, "/tenants", {"name": "B"} | change)
        assert (error.status, list(error.body["errors"])) == (400, [field]), change
    assert Tenant.objects.count() == count


def test_the_issuer_status_is_no_id(faber):
    assert faber.get("/tenants/issuerStatus") == {
        "requireAcceptance": False,
        "transactionEndorsement": "Shared",
        "issuerCanEndorse": True,
        "issuerRegistered": True,
    }


def test_networks_are_listed_and_ask_for_no_agreement(faber, acme):
    local = {"networkId": "local", "networkName": "Local network"}
    assert faber.get("/common/networks") == [local]
    assert faber.get("/common/networks/local/txnAuthorAgreement") == {}
    error = error_of(faber.get, "/common/networks/moon/txnAuthorAgreement")
    assert_error(error, 404, "not_found")
    for mine in (faber.tenant.public_id, "local"):
        assert faber.put(f"/common/networks/{mine}/txnAuthorAgreement") is None
    for other in (acme.tenant.public_id, "moon", UNKNOWN):
        path = f"/common/networks/{other}/txnAuthorAgreement"
        assert error_of(faber.put, path).status == 404


def test_the_wallet_api_tells_who_hosts(faber, settings):
    [mine] = faber.get("/tenants")
    known = mine["extendedInformation"]
    info = faber.get("/api/config")
    assert (info["issuerDid"], info["name"]) == (known["issuerDid"], "Faber College")
    assert info["endpoint"]["verkey"] == [known["issuerKey"]]
    faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
    endpoint = faber.get("/custodian/v1/api/config")["endpoint"]
    assert endpoint["verkey"] == known["issuerKey"]


def test_the_root_of_the_wallet_api_answers_anybody(client):
    for path in ("/custodian/v1/", "/wallet/v1/", "/custodian/"):
        assert client.get(path).status_code == 200
