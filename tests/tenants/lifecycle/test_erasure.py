"""Deleted organizations and wallets: hidden at once, removed in small transactions."""

import pytest
from django.apps import apps
from django.db.models import Q

from connections.models import Connection
from core.work.retention import BatchBudget
from credentials.models import Credential
from tenants.lifecycle import erasure
from tenants.models import AuditEntry, DataKey, Erasure, Tenant
from tests.support.errors import assert_error, error_of
from tests.support.people import Holder
from wallets.models import Key, Wallet
from webhooks.models import Attempt, Delivery

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}
POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}


def rows_with(column, key):
    """How many rows each table has of an owner, by the table's name."""
    found = {}
    for model in apps.get_models():
        fields = {field.name for field in model._meta.concrete_fields}
        if column in fields and model._meta.managed and model is not AuditEntry:
            number = model._base_manager.filter(**{f"{column}_id": key}).count()
            found |= {model._meta.db_table: number} if number else {}
    return found


class Batches(BatchBudget):
    """A budget of so many batches, without the pauses of a service in use."""

    def __init__(self, number=10_000):
        self.left = number


@pytest.fixture(autouse=True)
def no_pause(monkeypatch, settings):
    settings.DELETION_UNDO_HOURS = 0
    monkeypatch.setattr("core.work.retention.PAUSE_SECONDS", 0)


@pytest.fixture
def many(monkeypatch):
    """More than one connection is many."""
    monkeypatch.setattr(Wallet, "MAX_ENDED_AT_ONCE", 1)
    monkeypatch.setattr(erasure, "CONNECTIONS_AT_ONCE", 1)


@pytest.fixture
def busy(faber, acme):
    """Faber with something of everything, and with a peer in another organization."""
    alice, definition = faber.hosts(), faber.defines("name", "level")
    alice.receives(faber, definition, VALUES)
    faber.post("/webhooks", {"url": "https://office.example"})
    bob = acme.hosts("Bob")
    bob.meets(faber)
    faber.offers(bob, definition, VALUES)
    faber.asks(bob, attributes=[{"policyName": "name"}])
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    faber.post("/kiosks", {"name": "Desk", "policyId": stored})
    faber.post("/messages", {"connectionId": bob.known_as(faber), "text": "Hi"})
    faber.invites(multiParty=True)
    return bob


def deletes(organization):
    organization.delete(f"/tenants/{organization.tenant.public_id}")


def finish(step=1):
    """Do what is left; each worker is stopped a step later than the one before.

    step: a number of batches. With 1 one of them is stopped after each batch.
    """
    for number in range(0, 300, step):
        if not (job := Erasure.objects.first()):
            return
        erasure.erase(job.lease(), Batches(number))
    pytest.fail("it does not come to an end")


def test_no_row_is_left_in_any_table_and_what_was_open_at_a_peer_ends(
    faber, busy, many
):
    tenant = faber.tenant.pk
    deletes(faber)
    assert not DataKey.objects.filter(tenant=tenant).exists(), "it goes with the call"
    for path in ("/tenants", "/connections", "/api/wallets"):
        assert_error(error_of(faber.get, path), 401, "unauthorized")
    assert busy.states() == ["Offered", "Requested"], "a worker tells the peer"
    assert len(rows_with("tenant", tenant)) > 5
    for _ in ("before", "after"):
        path = f"/verifications/propose/{busy.known[faber][1]}"
        assert_error(error_of(busy.put, path, POLICY), 409, "connection_gone")
        finish()
    assert rows_with("tenant", tenant) == {}
    assert not Tenant._base_manager.filter(pk=tenant).exists()
    assert not Delivery.objects.exists() and not Attempt.objects.exists()
    assert busy.states() == ["Rejected", "Rejected"]


def test_a_link_of_a_deleted_organization_is_unknown(faber, client, many, acme):
    invited = [faber.invites(multiParty=True) for _ in "ab"]
    path = invited[0]["invitationUrl"].split("?")[0].removeprefix("http://testserver")
    assert client.get(path).status_code != 404
    deletes(faber)
    assert client.get(path).status_code == 404
    bob = acme.hosts("Bob")
    error = error_of(bob.accepts_invitation, invited[1]["invitation"])
    assert_error(error, 409, "invitation_gone")


def test_the_id_that_was_chosen_is_free_at_once(provider):
    chosen = "0190a1b2-0000-7000-8000-000000000001"
    for _ in range(2):
        assert provider.makes(tenantId=chosen)["tenantId"] == chosen
        provider.delete(f"/tenants/{chosen}")
    assert_error(error_of(provider.get, f"/tenants/{chosen}"), 404, "not_found")
    assert provider.get("/tenants") == []


def hosts_alice(organization):
    organization.post("/api/wallets", {"walletId": "alice"})
    return Holder(organization, "alice")


@pytest.fixture
def alice(faber, acme):
    """Alice with an id that was chosen, and two peers."""
    alice = hosts_alice(faber)
    for peer in (faber, acme):
        alice.meets(peer)
    return alice


def test_no_row_of_a_wallet_is_left_and_its_peers_are_told(faber, acme, alice, many):
    definition = acme.defines("name", "level")
    alice.receives(acme, definition, VALUES)
    offered = f"/credentials/{acme.offers(alice, definition, VALUES)['credentialId']}"
    wallet = Wallet.objects.get(wallet_id="alice")
    faber.delete("/api/wallets/alice")
    assert faber.get("/api/wallets") == []
    assert_error(error_of(alice.get, "/connections"), 404, "not_found")
    assert hosts_alice(faber).get("/connections") == []
    assert acme.get(offered)["state"] == "Offered"
    again = error_of(acme.offers, alice, definition, VALUES)
    assert_error(again, 409, "connection_gone")
    finish()
    assert acme.get(offered)["state"] == "Rejected"
    assert rows_with("wallet", wallet.pk) == {}
    assert not Wallet._base_manager.filter(pk=wallet.pk).exists()
    issued = Credential.objects.filter(state="Issued", role="issuer")
    assert issued.count() == 1, "the issuer's stays"


def test_a_wallet_goes_with_an_organization_that_is_deleted_meanwhile(
    faber, alice, many
):
    faber.delete("/api/wallets/alice")
    deletes(faber)
    finish(step=10)
    assert rows_with("tenant", faber.tenant.pk) == {}
    assert not Key.objects.filter(~Q(seed=None), tenant=faber.tenant).exists()


def test_an_erasure_that_fails_is_tried_again_later(faber, monkeypatch, caplog):
    deletes(faber)
    monkeypatch.setattr(erasure, "delete_rows", lambda *_: 1 / 0)
    erasure.erase_due()
    job = Erasure.objects.get()
    assert job.last_error == "internal_error" and not Erasure.due().exists()
    assert "failed" in caplog.text


def test_the_task_goes_on_where_a_killed_worker_stopped(faber, busy, many):
    deletes(faber)
    (job,) = Erasure.claim(1)
    erasure.erase_organization(job.object_key, Batches(3))
    erasure.erase_due()
    assert Connection.objects.filter(tenant=faber.tenant).exists(), "it is leased"
    Erasure.objects.update(lease_until=job.created_at)
    erasure.erase_due()
    assert not Erasure.objects.exists()
    assert rows_with("tenant", faber.tenant.pk) == {}
