"""Creating an organization, completely or not at all, in code and by command."""

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from core.errors import Conflict, Invalid
from credentials.models import PublishedObject
from tenants.lifecycle import provisioning
from tenants.models import ApiKey, DataKey, Membership, Network, Provider, Tenant
from tests.factories import NetworkFactory, UserFactory
from tests.support.errors import error_of
from tests.support.people import Api
from tests.support.races import at_once, error_codes
from wallets import keys
from wallets.models import Key, Wallet

MODELS = (
    ApiKey, DataKey, Membership, Network, Provider, Tenant, Wallet, Key,
    PublishedObject,
)  # fmt: skip
SEED = b"testseed0000000000000000000000C1"


def count_rows():
    return [model.objects.count() for model in MODELS]


def test_an_organization_has_all_that_it_needs(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant)
    assert wallet.is_organization and wallet.name == "Faber College"
    published = PublishedObject.objects.get(object_id=wallet.did)
    assert published.body == {"did": wallet.did, "verkey": wallet.keys.get().verkey}
    assert DataKey.objects.filter(tenant=faber.tenant).count() == 1
    assert ApiKey.objects.filter(tenant=faber.tenant).count() == 2
    assert faber.tenant.provider.keys.get().kind == ApiKey.Kind.PROVIDER_KEY


STEPS = [
    "tenants.vault.create_data_key",
    "tenants.lifecycle.provisioning.create_organization_wallet",
    "tenants.lifecycle.provisioning.ledger_of",
    "tenants.models.ApiKey.issue",
]


def test_an_organization_that_fails_at_any_step_leaves_nothing(
    transactional_db, monkeypatch
):
    before = count_rows()
    for step in STEPS:
        with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
            broken.setattr(step, lambda *_, **__: 1 / 0)
            provisioning.create_organization("Faber College")
        assert count_rows() == before, step


def test_the_did_of_a_seed_is_taken_also_when_its_organization_is_gone(
    transactional_db,
):
    made = provisioning.create_organization("Faber", seed=SEED)
    did = keys.did_of(keys.verkey_of(SEED))
    assert Wallet.objects.get(tenant=made.tenant).did == did
    before = count_rows()
    with pytest.raises(Conflict) as taken:
        provisioning.create_organization("Acme", seed=SEED)
    assert taken.value.code == "did_taken" and count_rows() == before
    with transaction.atomic():
        Wallet.objects.filter(tenant=made.tenant).delete()
        Key.objects.filter(tenant=made.tenant).delete()
        made.tenant.delete()
    with pytest.raises(Conflict):
        provisioning.create_organization("Acme", seed=SEED)


def test_of_many_organizations_with_one_seed_one_is_made(transactional_db):
    provisioning.require_network("local")
    make = [lambda: provisioning.create_organization("Faber", seed=SEED)] * 4
    assert error_codes(at_once(*make)) == ["did_taken"] * 3
    assert Tenant.objects.count() == 1


def test_the_first_organizations_make_the_local_network_together(transactional_db):
    made = at_once(*[lambda: provisioning.create_organization("Faber")] * 4)
    assert error_codes(made) == [] and Tenant.objects.count() == 4
    assert Network.objects.count() == 1


def test_a_foreign_network_stands_for_one_here(faber, settings):
    settings.NETWORK_ALIASES = {"sovrin-staging": "local", "sovrin-builder": "gone"}
    made = faber.post("/tenants", {"name": "Acme", "networkId": "sovrin-staging"})
    assert made["network"]["networkId"] == "local"
    before = count_rows()
    for other in ("sovrin-builder", "sovrin"):
        with pytest.raises(Invalid) as unknown:
            provisioning.create_organization("Acme", network_id=other)
        assert unknown.value.code == "unknown_network"
        assert "local" in unknown.value.message and count_rows() == before
    # The agreement is that of ours.
    path = "/common/networks/sovrin-staging/txnAuthorAgreement"
    assert faber.get(path) == {} and faber.put(path) is None
    error_of(faber.get, path.replace("staging", "builder"))
    own = NetworkFactory(id="sovrin-staging")
    assert provisioning.require_network("sovrin-staging") == own, "one of ours"


def test_the_first_organization_may_name_the_local_network_by_another_id(
    transactional_db, settings
):
    settings.NETWORK_ALIASES = {"bcovrin-test": "local"}
    made = provisioning.create_organization("Acme", network_id="bcovrin-test")
    assert made.tenant.network_id == "local"


def test_the_owner_becomes_a_member(transactional_db):
    person = UserFactory()
    made = provisioning.create_organization("Faber", owner=person)
    membership = Membership.objects.get(tenant=made.tenant)
    assert (membership.user, membership.role) == (person, Membership.Role.OWNER)


PRINTED = ["tenantId", "accessToken", "subscriptionKey", "providerKey"]


def test_the_command_prints_keys_that_work_for_programs_and_for_people(
    transactional_db, capsys
):
    call_command("create_organization", "Faber", "--json")
    made = json.loads(capsys.readouterr().out)
    assert list(made) == PRINTED
    assert Api(made["accessToken"], made["subscriptionKey"]).get("/connections") == []
    assert str(Tenant.objects.get().pk) == made["tenantId"]
    call_command("create_organization", "Acme")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == PRINTED
    assert "cannot be read again" in lines[4]


def test_the_command_refuses_with_a_sentence_and_makes_nothing(transactional_db):
    for arguments in (["  "], ["x" * 201], ["Faber", "--network", "sovrin"]):
        with pytest.raises(CommandError):
            call_command("create_organization", *arguments)
    assert Tenant.objects.count() == 0
