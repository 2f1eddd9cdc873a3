"""An organization holds and proves with its own wallet, if its settings allow it."""

import pytest

from credentials.models import Credential
from tenants.models import Tenant
from tests.support.errors import assert_error, error_of
from tests.support.people import Holder
from wallets.models import Wallet

VALUES = {"name": "Acme Corp", "level": "7"}


def allow(organization, is_allowed=True):
    rows = Tenant.objects.filter(pk=organization.tenant.pk)
    rows.update(own_wallet_api=is_allowed)


@pytest.fixture
def own(acme):
    """Acme's own wallet, as the wallet API sees it."""
    allow(acme)
    return Holder(acme, acme.get("/tenants")[0]["ownWalletId"])


def test_it_is_not_reached_unless_the_settings_allow_it(acme, faber, own):
    assert own.get("/credentials") == []
    allow(acme, False)
    for path in ("/credentials", "/connections", "/verifications"):
        assert_error(error_of(own.get, path), 404, "not_found")
    allow(acme)
    stranger = Holder(faber, own.wallet_id)
    allow(faber)
    assert_error(error_of(stranger.get, "/credentials"), 404, "not_found")


def test_it_is_issued_a_credential_and_proves_it(acme, faber, own):
    definition = faber.defines("name", "level")
    held = own.receives(faber, definition, VALUES)
    assert own.get(f"/credentials/{held}")["values"] == VALUES
    asked = faber.asks(own, attributes=[{"policyName": "name"}])
    own.auto_selects()
    seen = faber.get(f"/verifications/{asked['verificationId']}")
    assert seen["isValid"] is True and seen["proof"]["name"]["value"] == "Acme Corp"


def test_it_invites_nobody_by_a_did_without_endpoint(acme, own):
    refused = error_of(own.post, "/connections", {"usePublicDid": True})
    assert_error(refused, 409, "endpoint_not_published")
    assert own.get("/connections") == []


def test_it_shows_only_what_the_organization_holds(acme, faber, own):
    alice, definition = acme.hosts(), acme.defines("name", "level")
    issued = acme.offers(alice, definition, VALUES)["credentialId"]
    asked = acme.asks(alice, attributes=[{"policyName": "name"}])["verificationId"]
    assert own.get("/credentials") == [] and own.get("/verifications") == []
    for path in (f"/credentials/{issued}", f"/verifications/{asked}"):
        assert_error(error_of(own.get, path), 404, "not_found")
    assert_error(error_of(own.post, f"/credentials/{issued}"), 404, "not_found")
    path = f"/verifications/{asked}/autoSelect"
    assert_error(error_of(own.put, path), 404, "not_found")


def test_what_it_holds_is_not_issued_or_revoked(acme, faber, own):
    faber.offers(own, faber.defines("name", "level"), VALUES)
    own.accepts_offer()
    row = Credential.objects.get(role="holder")
    path = f"/credentials/{row.pk}"
    assert acme.get(path)["state"] == "Requested"
    assert_error(error_of(acme.put, path), 409, "wrong_role")
    assert_error(error_of(acme.put, f"{path}/offer", {}), 409, "wrong_role")
    assert_error(error_of(acme.delete, path), 409, "wrong_role")


def test_the_issuers_lists_show_what_it_holds_only_by_role(acme, faber, own):
    alice, definition = acme.hosts(), acme.defines("name", "level")
    issued = acme.offers(alice, definition, VALUES)["credentialId"]
    asked = acme.asks(alice, attributes=[{"policyName": "name"}])["verificationId"]
    held = own.receives(faber, faber.defines("name", "level"), VALUES)
    faber.asks(own, attributes=[{"policyName": "name"}])
    ids = [one["credentialId"] for one in acme.get("/credentials")]
    assert ids == [issued]
    assert [one["credentialId"] for one in acme.get("/credentials", limit=1)] == ids
    [one] = acme.get("/credentials", role="holder")
    assert one["credentialId"] == held
    [one] = acme.get("/verifications")
    assert one["verificationId"] == asked
    [one] = acme.get("/verifications", role="prover")
    assert one["verificationId"] != asked
    allow(acme, False)
    assert len(acme.get("/credentials")) == 2, "as ever"


def test_it_is_not_deleted_with_the_wallet_api(acme, own):
    path = f"/api/wallets/{own.wallet_id}"
    assert_error(error_of(acme.delete, path), 404, "not_found")
    path = f"/api/wallets?walletId={own.wallet_id}"
    assert_error(error_of(acme.delete, path), 404, "not_found")
    assert Wallet.objects.filter(tenant=acme.tenant, is_organization=True).exists()
    assert own.wallet_id not in [one["walletId"] for one in acme.get("/api/wallets")]


def test_it_takes_links_connects_and_writes(acme, faber, own):
    definition = faber.defines("name", "level")
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    offered = faber.post("/credentials", body | {"automaticIssuance": True})
    taken = own.put_form("/credentials/fromData", credentialData=offered["offerUrl"])
    assert taken["state"] == "Issued"
    mine = own.meets(faber)["connectionId"]
    assert own.get(f"/connections/{mine}")["state"] == "Connected"
    assert acme.get(f"/connections/{mine}")["state"] == "Connected"
    own.post("/messages", {"connectionId": mine, "text": "Hello"})
    assert own.post(f"/connections/{mine}/ping")["answeredAtUtc"]
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    proposed = own.put(f"/verifications/propose/{mine}", policy)
    assert proposed["state"] == "Proposed"


def test_a_provider_account_allows_it(provider):
    made = provider.makes(ownWalletApi=True)
    office = provider.opens(made)
    assert made["ownWalletApi"] is True
    assert office.get(f"/api/{made['ownWalletId']}/credentials") == []
    provider.put(f"/tenants/{made['tenantId']}", {"ownWalletApi": False})
    path = f"/api/{made['ownWalletId']}/credentials"
    assert_error(error_of(office.get, path), 404, "not_found")
