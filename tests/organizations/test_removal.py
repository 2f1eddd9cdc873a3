"""Deleting an organization: what goes, what stays, and what its peers are told."""

import pytest

from connections.models import Connection, InboundMessage, OutboundMessage
from credentials.models import Credential, CredentialDefinition, PublishedObject
from tenants.models import ApiKey, DataKey, Membership, Tenant
from tests.support import queues, races
from tests.support.erasing import worker_erases
from tests.support.errors import error_of
from tests.support.outside_agent import Agent, listening
from tests.support.people import Provider
from verifications.models import Verification
from wallets.models import Key, Wallet
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)
OWNED = (
    ApiKey, Connection, Credential, CredentialDefinition, DataKey, InboundMessage,
        Membership,
    Verification, Wallet, Webhook,
)  # fmt: skip
VALUES = {"name": "Ann", "level": "7"}


def path_of(organization):
    return f"/tenants/{organization.tenant.public_id}"


def busy(organization):
    """An organization with something of everything."""
    alice, definition = organization.hosts(), organization.defines("name", "level")
    alice.receives(organization, definition, VALUES)
    organization.asks(alice, attributes=[{"policyName": "name"}])
    organization.offers(alice, definition, VALUES)
    organization.post("/webhooks", {"url": "https://office.example"})
    organization.post(
        "/messages", {"connectionId": alice.known_as(organization), "text": "Hi"}
    )
    organization.post("/credentials", {"definitionId": definition["definitionId"],
                                       "credentialValues": VALUES})  # fmt: skip
    organization.invites(multiParty=True)
    return definition


def test_all_that_is_its_own_goes(faber):
    busy(faber)
    tenant = faber.tenant.pk
    faber.delete(path_of(faber))
    worker_erases()
    left = {
        model.__name__: model.objects.filter(tenant=tenant).count() for model in OWNED
    }
    assert {name: count for name, count in left.items() if count} == {}
    assert not Tenant.objects.filter(pk=tenant).exists()


def test_its_token_is_401_at_once(faber):
    faber.delete(path_of(faber))
    for path in ("/tenants", "/connections", "/api/wallets"):
        assert error_of(faber.get, path).status == 401


def test_public_objects_of_a_removed_organization_stay(faber, client):
    definition = busy(faber)
    before = list(PublishedObject.objects.order_by("pk").values())
    faber.delete(path_of(faber))
    assert list(PublishedObject.objects.order_by("pk").values()) == before
    path = f"/ledger/local/credential-definitions/{definition['definitionId']}"
    assert client.get(path).status_code == 200


def test_a_peer_is_told_and_its_next_word_is_409(faber, acme):
    bob = acme.hosts("Bob")
    bob.meets(faber)
    definition = faber.defines("name", "level")
    bob.receives(faber, definition, VALUES)
    faber.offers(bob, definition, VALUES)
    faber.delete(path_of(faber))
    assert [one["state"] for one in bob.get("/credentials")] == ["Rejected", "Issued"]
    worker_erases()
    row = Connection.objects.get(wallet__wallet_id=bob.wallet_id)
    assert Key.objects.get(verkey=row.their_key).tenant is None
    body = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    error = error_of(bob.put, f"/verifications/propose/{row.connection_id}", body)
    assert error.code == "connection_gone"


def test_the_keys_stay_as_tombstones_without_seeds(faber):
    faber.hosts().meets(faber)
    verkeys = set(Key.objects.values_list("verkey", flat=True))
    faber.delete(path_of(faber))
    worker_erases()
    assert set(Key.objects.values_list("verkey", flat=True)) == verkeys
    assert not Key.objects.exclude(seed=None, wallet=None, tenant=None).exists()


def test_a_message_to_another_agent_still_goes_out(faber, settings):

    settings.OUTGOING_ALLOW_LOOPBACK = True
    with listening(Agent()) as phone:
        row = phone.connects(faber)
        definition = faber.defines("name", "level")
        body = {
            "definitionId": definition["definitionId"],
            "connectionId": row.connection_id,
        }
        faber.post("/credentials", body | {"credentialValues": VALUES})
        faber.delete(path_of(faber))
        worker_erases()
        assert OutboundMessage.objects.filter(status="pending", tenant=None).exists()
        queues.worker_catches_up()
        assert phone.inbox[-1].is_problem_report


def test_the_provider_account_and_its_other_organizations_stay(faber, acme):
    provider = Provider(faber)
    made = provider.makes()
    faber.delete(path_of(faber))
    assert provider.get("/tenants") == [made]
    assert acme.get("/connections") == []


def test_of_two_deletions_at_once_both_succeed_or_find_nothing(faber):
    provider = Provider(faber)
    path = f"/tenants/{provider.makes()['tenantId']}"
    answers = races.at_once(*[lambda: provider.delete(path)] * 3)
    assert set(races.error_codes(answers)) <= {"not_found"}
    assert provider.get("/tenants") == []
