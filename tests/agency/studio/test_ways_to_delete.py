"""Each way of deleting something large leaves the same rows to the worker."""

import pytest

from connections import removal
from connections.models import Connection
from tenants.models import DataKey, Erasure, Tenant
from tests.support.people import Api
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(Wallet, "MAX_ENDED_AT_ONCE", 0)
    monkeypatch.setattr(removal, "MAX_IN_CALL", 0)


def erased():
    """The kind and the row of the only erasure."""
    job = Erasure.objects.get()
    return job.kind, job.object_key


ORGANIZATION = ["API", "provider's API", "provider's API for all", "studio"]


@pytest.mark.parametrize("way", ORGANIZATION)
def test_an_organization_is_hidden(api, browser, url, college, way, settings):
    settings.DELETION_UNDO_HOURS = 0  # of the API
    Tenant.objects.update(made_by_provider=True)  # so that the provider finds it
    api.post("/connections", {})
    path = f"/tenants/{college.tenant.public_id}"
    if way == "studio":
        browser.send(f"{url}/delete", typed_name="Faber College")
    elif way == "API":
        api.delete(path)
    else:
        provider = Api(college.provider_key, "", "/provider/v1")
        provider.delete("/tenants" if "all" in way else path)
    assert erased() == ("organization", college.tenant.pk)
    assert not Tenant.objects.exists()
    assert not DataKey.objects.filter(tenant=college.tenant).exists()
    assert Connection.objects.filter(tenant=college.tenant).exists()


@pytest.mark.parametrize("way", ["API", "studio"])
def test_a_wallet_is_hidden(api, browser, url, way):
    wallet_id = api.post("/api/wallets", {})["walletId"]
    wallet = Wallet.objects.get(wallet_id=wallet_id)
    api.post(f"/api/{wallet_id}/connections", {})
    if way == "API":
        api.delete(f"/api/wallets/{wallet_id}")
    else:
        browser.send(f"{url}/wallets/{wallet.pk}/remove", typed_name=wallet_id)
    assert erased() == ("wallet", wallet.pk)
    assert not Wallet.objects.filter(pk=wallet.pk).exists()
    assert Connection.objects.filter(wallet=wallet.pk).exists()


@pytest.mark.parametrize("way", ["API", "studio"])
def test_a_connection_is_hidden(api, browser, url, way):
    connection_id = api.hosts().known_as(api)
    api.post("/messages", {"connectionId": connection_id, "text": "Hi"})
    row = Connection.objects.get(connection_id=connection_id)
    if way == "API":
        api.delete(f"/connections/{connection_id}")
    else:
        typed = row.name or connection_id
        browser.send(f"{url}/connections/{row.pk}/remove", typed_name=typed)
    assert erased() == ("connection", row.pk)
    assert not Connection.objects.filter(pk=row.pk).exists()
    assert row.messages.exists()
