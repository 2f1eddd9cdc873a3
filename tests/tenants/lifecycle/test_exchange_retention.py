"""What organizations do not want to keep: values first, then the records."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from connections.models import Connection
from core.errors import Unavailable
from credentials.models import Credential
from tenants.lifecycle import exchange_retention
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.models import Tenant
from tests.support.database import restored
from tests.support.people import Organization
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}


@restored
def faber():
    """Alice, with a credential and a proof that are 40 days old, and an open offer."""
    faber = Organization("Faber College")
    faber.alice = alice = faber.hosts()
    definition = faber.defines("name", "level")
    alice.receives(faber, definition, VALUES)
    faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    faber.offers(alice, definition, VALUES)
    age(40)
    return faber


@pytest.fixture
def alice(faber):
    return faber.alice


def age(days):
    for model in (Credential, Verification):
        model.objects.update(updated_at=F("updated_at") - timedelta(days=days))


def keeps(organization, **days):
    Tenant.objects.filter(pk=organization.tenant.pk).update(**days)


def test_values_go_and_states_stay(faber, alice):
    held = alice.get("/credentials")
    keeps(faber, values_kept_days=30)
    assert delete_old_exchanges() == 2
    open_one, issued = faber.get("/credentials")
    assert (issued["state"], issued.get("values")) == ("Issued", None)
    assert open_one["values"] == VALUES
    [proven] = faber.get("/verifications")
    assert proven["isValid"] and not proven.get("proof")
    assert alice.get("/credentials") == held
    assert delete_old_exchanges() == 0


def test_then_the_records_go_and_what_is_held_or_open_stays(faber, alice):
    keeps(faber, values_kept_days=30, exchanges_kept_days=60)
    delete_old_exchanges()
    assert faber.states() == ["Offered", "Issued", "Accepted"]
    age(40)
    delete_old_exchanges()
    assert faber.states() == ["Offered"]
    assert alice.states() == ["Offered", "Issued", "Accepted"]


def test_younger_ones_and_those_of_others_stay(faber, acme, alice):
    assert delete_old_exchanges() == 0, "without a setting"
    keeps(faber, exchanges_kept_days=60)
    keeps(acme, exchanges_kept_days=1)
    assert delete_old_exchanges() == 0


def test_a_record_that_cannot_be_deleted_now_keeps_no_other_one(
    faber, acme, alice, monkeypatch
):
    """Such as a revoked credential while its ledger is out of reach."""

    def fail(credential):
        raise Unavailable("ledger_unavailable", "The ledger is out of reach.")

    monkeypatch.setattr(exchange_retention, "remove_credential", fail)
    keeps(faber, exchanges_kept_days=20)
    assert delete_old_exchanges() == 1
    assert faber.states() == ["Offered", "Issued"]
    monkeypatch.undo()
    assert delete_old_exchanges() == 1


def test_a_connection_for_one_exchange_goes_with_it(faber, alice):
    definition_id = faber.defines("name", "level")["definitionId"]
    body = {"definitionId": definition_id, "credentialValues": VALUES}
    data = faber.post("/credentials", body)["offerData"]
    alice.put_form("/credentials/fromData", credentialData=data)
    alice.post(f"/credentials/{alice.newest('credentials')['credentialId']}/decline")
    age(30)
    Credential.objects.filter(state="Issued").update(updated_at=Now())
    keeps(faber, exchanges_kept_days=20)
    before = Connection.objects.filter(connectionless=True).count()
    assert delete_old_exchanges() == 2
    assert Connection.objects.filter(connectionless=True).count() < before
