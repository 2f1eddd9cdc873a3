"""Deleting an organization: what goes, what stays, and what its peers are told."""

import pytest

from connections.models import Connection
from credentials.models import PublishedObject
from tests.support import queues, races
from tests.support.erasing import worker_erases
from tests.support.errors import error_of
from wallets.models import Key

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}


@pytest.fixture(autouse=True)
def at_once(settings):
    settings.DELETION_UNDO_HOURS = 0


def path_of(organization):
    return f"/tenants/{organization.tenant.public_id}"


def test_a_peer_is_told_and_its_next_word_is_409(faber, acme, client):
    bob = acme.hosts("Bob")
    bob.meets(faber)
    definition = faber.defines("name", "level")
    bob.receives(faber, definition, VALUES)
    faber.offers(bob, definition, VALUES)
    before = list(PublishedObject.objects.order_by("pk").values())
    faber.delete(path_of(faber))
    # What is public stays.
    assert list(PublishedObject.objects.order_by("pk").values()) == before
    path = f"/ledger/local/credential-definitions/{definition['definitionId']}"
    assert client.get(path).status_code == 200
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


def test_a_message_to_another_agent_still_goes_out(faber, phone):
    row = phone.connects(faber)
    body = {"connectionId": row.connection_id, "credentialValues": VALUES}
    definition_id = faber.defines("name", "level")["definitionId"]
    faber.post("/credentials", body | {"definitionId": definition_id})
    faber.delete(path_of(faber))
    worker_erases()
    assert queues.pending().filter(tenant=None).exists()
    queues.worker_catches_up()
    assert phone.inbox[-1].is_problem_report


def test_the_provider_account_and_its_other_organizations_stay(faber, provider, acme):
    made = provider.makes()
    faber.delete(path_of(faber))
    assert provider.get("/tenants") == [made]
    assert acme.get("/connections") == []


def test_of_two_deletions_at_once_both_succeed_or_find_nothing(provider):
    path = f"/tenants/{provider.makes()['tenantId']}"
    answers = races.at_once(*[lambda: provider.delete(path)] * 3)
    assert set(races.error_codes(answers)) <= {"not_found"}
    assert provider.get("/tenants") == []
