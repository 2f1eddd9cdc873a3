"""What is deleted of a test organization after 30 days, and what stays."""

from datetime import timedelta

import pytest
from django.db.models import F

from connections.models import BasicMessage, Connection
from core.errors import Unavailable
from credentials.models import Credential
from sandbox import retention
from sandbox.models import SimulatedAnswer, SimulatedHolder
from tenants.lifecycle.erasure import erase_due
from tenants.models import Tenant
from tests.sandbox.people import VALUES, asks, holders_answer, offers, simulates
from tests.support.database import restored
from tests.support.people import Organization
from verifications.models import Verification
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
AGED = (Connection, Credential, Verification, BasicMessage, Wallet, SimulatedAnswer)


def age(days):
    for model in AGED:
        rows = model._base_manager.all()
        rows.update(created_at=F("created_at") - timedelta(days=days))


@restored
def faber():
    """A simulated holder and Alice, with a credential, proof and text each."""
    faber = Organization("Faber College", is_test=True)
    rex, alice, definition = simulates(faber), faber.hosts(), faber.defines(*VALUES)
    alice.receives(faber, definition, VALUES)
    offers(faber, rex, definition)
    asks(faber, rex, attributes=[{"policyName": "name"}])
    holders_answer()
    for connection in (rex["connectionId"], alice.known_as(faber)):
        faber.post("/messages", {"connectionId": connection, "text": "Hello"})
    faber.offers(alice, definition, VALUES)
    link = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    faber.post("/credentials", link)
    faber.rex = rex
    return faber


@pytest.fixture
def rex(faber):
    return faber.rex


def test_old_data_goes_and_simulated_holders_stay(faber, rex):
    age(31)
    assert retention.delete_old_data() > 5
    erase_due()
    for model in (Credential, Verification, BasicMessage):
        assert not model.objects.exists()
    assert faber.get("/sandbox/holders") == [rex]
    [connection] = faber.get("/connections")
    assert connection["connectionId"] == rex["connectionId"]
    assert [one["walletId"] for one in faber.get("/api/wallets")] == [rex["walletId"]]
    assert len(faber.get("/definitions/credentials")) == 1
    assert retention.delete_old_data() == 0
    offers(faber, rex, faber.get("/definitions/credentials")[0])
    holders_answer()
    assert faber.get("/credentials")[0]["state"] == "Issued"


def test_nothing_of_other_organizations_goes(faber, rex):
    age(29)
    assert retention.delete_old_data() == 0, "nor what is newer"
    Tenant.objects.update(is_test=False)
    age(300)
    assert retention.delete_old_data() == 0
    assert SimulatedHolder.objects.exists() and Credential.objects.exists()


def test_what_cannot_be_removed_now_does_not_stop_the_rest(faber, rex, monkeypatch):
    def refuse(credential):
        raise Unavailable("ledger_unavailable", "Later.")

    monkeypatch.setattr(retention, "remove_credential", refuse)
    age(31)
    retention.delete_old_data()
    assert Credential.objects.exists() and not Verification.objects.exists()
    assert not BasicMessage.objects.exists()


def test_a_run_ends_with_its_budget(faber, rex, monkeypatch):
    monkeypatch.setattr("core.work.retention.MAX_BATCHES", 1)
    age(31)
    assert retention.delete_old_data() == 1  # Alice's wallet
