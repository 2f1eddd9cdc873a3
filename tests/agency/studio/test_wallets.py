"""Hosted wallets in the studio: created, connected and deleted as by the API."""

import pytest

from connections.models import Connection
from tenants.models import AuditEntry
from tests.support.people import Api
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(college):
    return Api(college.access_token, college.subscription_key)


def create(browser, url, **fields):
    answer = browser.send(f"{url}/wallets/new", **fields)
    assert answer.status_code == 302, answer.content.decode()
    row = Wallet.hosted_by(Wallet.objects.first().tenant).latest("pk")
    assert answer.url == f"{url}/wallets/{row.pk}"
    return row


def test_a_wallet_is_created_as_by_the_api(browser, url, api):
    row = create(browser, url, owner_name="Alice", wallet_id="room 2")
    [shown] = api.get("/api/wallets")
    assert (shown["walletId"], shown["ownerName"]) == ("room 2", "Alice")
    entry = AuditEntry.objects.get(action="wallet.created")
    assert entry.object_id == str(row.pk) and "Alice" not in str(entry.details)


@pytest.mark.parametrize("wallet_id", ["a/b", "wallets", " x"])
def test_an_id_that_is_no_part_of_a_path_is_refused(browser, url, college, wallet_id):
    answer = browser.send(f"{url}/wallets/new", wallet_id=wallet_id)
    assert 'id="id_wallet_id_error"' in answer.content.decode()
    assert not Wallet.hosted_by(college.tenant).exists()


def test_an_id_is_taken_once(browser, url, college):
    create(browser, url, wallet_id="room")
    answer = browser.send(f"{url}/wallets/new", wallet_id="room")
    assert "The walletId room is taken." in answer.content.decode()
    assert Wallet.hosted_by(college.tenant).count() == 1


def test_a_wallet_is_connected_with_the_organization_by_one_button(browser, url, api):
    row = create(browser, url, owner_name="Alice")
    answer = browser.send(f"{url}/wallets/{row.pk}/connect")
    [mine] = api.get("/connections")
    assert (mine["name"], mine["state"]) == ("Alice", "Connected")
    made = Connection.objects.get(connection_id=mine["connectionId"])
    assert answer.url == f"{url}/connections/{made.pk}"
    [theirs] = api.get(f"/api/{row.wallet_id}/connections")
    assert theirs["state"] == "Connected"
    assert AuditEntry.objects.filter(action="connection.invited").count() == 1


def test_a_full_quota_is_said_on_the_page(browser, url, settings):
    row = create(browser, url, owner_name="Alice")
    settings.QUOTA_CONNECTIONS = 1
    settings.QUOTA_WALLETS = 1
    answer = browser.send(f"{url}/wallets/new", owner_name="Bob")
    assert "QUOTA_WALLETS" in answer.content.decode()
    browser.send(f"{url}/connections/new")
    answer = browser.send(f"{url}/wallets/{row.pk}/connect")
    assert answer.url == f"{url}/wallets/{row.pk}"
    assert "QUOTA_CONNECTIONS" in browser.get(answer.url).content.decode()


def test_a_wallet_is_deleted_after_its_name_is_typed(browser, url, api):
    row = create(browser, url, owner_name="Alice  Smith")
    path = f"{url}/wallets/{row.pk}/remove"
    wrong = browser.send(path, typed_name="alice")
    assert "This is not the name of the wallet." in wrong.content.decode()
    assert len(api.get("/api/wallets")) == 1
    answer = browser.send(path, typed_name="Alice Smith")
    assert answer.url == f"{url}/wallets" and api.get("/api/wallets") == []
    assert browser.get(path).status_code == 404
    assert AuditEntry.objects.filter(action="wallet.deleted").count() == 1


def test_who_may_only_look_has_no_button(viewer, browser, url):
    row = create(browser, url, owner_name="Alice")
    page = viewer.get(f"{url}/wallets/{row.pk}").content.decode()
    assert "Connect with us" not in page and "Delete this wallet" not in page
    assert "New wallet" not in viewer.get(f"{url}/wallets").content.decode()
