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


class Ways:
    """What a person or a program may call."""

    def __init__(self, api, browser, provider, college):
        self.api, self.browser, self.provider = api, browser, provider
        self.tenant = college.tenant
        self.url = f"/studio/organizations/{self.tenant.pk}"

    def organization_by_the_api(self):
        self.api.delete(f"/tenants/{self.tenant.public_id}")

    def organization_by_the_provider_api(self):
        self.provider.delete(f"/tenants/{self.tenant.public_id}")

    def all_organizations_by_the_provider_api(self):
        self.provider.delete("/tenants")

    def organization_by_the_studio(self):
        self.browser.send(f"{self.url}/delete", typed_name="Faber College")

    def wallet_by_the_api(self, wallet):
        self.api.delete(f"/api/wallets/{wallet.wallet_id}")

    def wallet_by_the_studio(self, wallet):
        path = f"{self.url}/wallets/{wallet.pk}/remove"
        self.browser.send(path, typed_name=wallet.wallet_id)

    def connection_by_the_api(self, row):
        self.api.delete(f"/connections/{row.connection_id}")

    def connection_by_the_studio(self, row):
        path = f"{self.url}/connections/{row.pk}/remove"
        self.browser.send(path, typed_name=row.name or row.connection_id)


@pytest.fixture
def ways(api, browser, college):
    provider = Api(college.provider_key, "", "/provider/v1")
    return Ways(api, browser, provider, college)


def ways_to_delete(what):
    return [name for name in vars(Ways) if what in name.split("_by_")[0]]


def erased():
    """The kind and the row of the only erasure."""
    job = Erasure.objects.get()
    return job.kind, job.object_key


@pytest.mark.parametrize("way", ways_to_delete("organization"))
def test_an_organization_is_hidden_without_its_data_key(ways, api, college, way):
    Tenant.objects.update(made_by_provider=True)  # so that the provider finds it
    api.post("/connections", {})
    getattr(ways, way)()
    assert erased() == ("organization", college.tenant.pk)
    assert not Tenant.objects.exists()
    assert not DataKey.objects.filter(tenant=college.tenant).exists()
    assert Connection.objects.filter(tenant=college.tenant).exists()


@pytest.mark.parametrize("way", ways_to_delete("wallet"))
def test_a_wallet_is_hidden(ways, api, way):
    wallet_id = api.post("/api/wallets", {})["walletId"]
    wallet = Wallet.objects.get(wallet_id=wallet_id)
    api.post(f"/api/{wallet_id}/connections", {})
    getattr(ways, way)(wallet)
    assert erased() == ("wallet", wallet.pk)
    assert not Wallet.objects.filter(pk=wallet.pk).exists()
    assert Connection.objects.filter(wallet=wallet.pk).exists()


@pytest.mark.parametrize("way", ways_to_delete("connection"))
def test_a_connection_is_hidden(ways, api, way):
    connection_id = api.hosts().known_as(api)
    api.post("/messages", {"connectionId": connection_id, "text": "Hi"})
    row = Connection.objects.get(connection_id=connection_id)
    getattr(ways, way)(row)
    assert erased() == ("connection", row.pk)
    assert not Connection.objects.filter(pk=row.pk).exists()
    assert row.messages.exists()
