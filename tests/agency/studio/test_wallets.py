"""Hosted wallets in the studio: created, connected and deleted as by the API."""

import re

import pytest
from django.test import Client

from agency.holders.wallet.models import UNOPENED_FOR, PersonalLink
from connections.models import Connection
from tenants.models import AuditEntry
from tests.agency.studio.conftest import read
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)


def create(browser, url, **fields):
    answer = browser.send(f"{url}/wallets/new", **fields)
    assert answer.status_code == 302, answer.text
    row = Wallet.hosted_by(Wallet.objects.first().tenant).latest("pk")
    assert answer.url == f"{url}/wallets/{row.pk}"
    return row


def test_a_wallet_is_created_and_connected_as_by_the_api(browser, url, api):
    row = create(browser, url, owner_name="Alice", wallet_id="room 2")
    [shown] = api.get("/api/wallets")
    assert (shown["walletId"], shown["ownerName"]) == ("room 2", "Alice")
    entry = AuditEntry.objects.get(action="wallet.created")
    assert entry.object_id == str(row.pk) and "Alice" not in str(entry.details)
    answer = browser.send(f"{url}/wallets/{row.pk}/connect")
    [mine] = api.get("/connections")
    assert (mine["name"], mine["state"]) == ("Alice", "Connected")
    made = Connection.objects.get(connection_id=mine["connectionId"])
    assert answer.url == f"{url}/connections/{made.pk}"
    [theirs] = api.get(f"/api/{row.wallet_id}/connections")
    assert theirs["state"] == "Connected"
    assert AuditEntry.objects.filter(action="connection.invited").count() == 1


def test_an_id_that_is_no_part_of_a_path_or_taken_is_refused(browser, url, college):
    for wallet_id in ("a/b", "wallets", " x"):
        answer = browser.send(f"{url}/wallets/new", wallet_id=wallet_id)
        assert 'id="id_wallet_id_error"' in answer.text
    create(browser, url, wallet_id="room")
    answer = browser.send(f"{url}/wallets/new", wallet_id="room")
    assert "The walletId room is taken." in answer.text
    assert Wallet.hosted_by(college.tenant).count() == 1


def test_a_wallet_is_created_with_its_personal_link_if_wanted(browser, url):
    page = read(browser, f"{url}/wallets/new")
    assert re.search(r'name="with_link"[^>]* checked', page)
    fields = {"owner_name": "Alice", "with_link": "on"}
    page = browser.send(f"{url}/wallets/new", **fields).text
    [path] = set(re.findall(r"/w/agw_\w+", page))
    row = Wallet.objects.get(owner_name="Alice")
    assert f"{url}/wallets/{row.pk}/issue" in page
    assert Client().get(path).url == "/w/pin"
    made = AuditEntry.objects.get(action="wallet.link_created")
    assert made.object_id == str(row.pk)


def test_issuing_to_a_wallet_connects_it_once(browser, url, api):
    row = create(browser, url, owner_name="Alice")
    leads = [browser.send(f"{url}/wallets/{row.pk}/issue").url for _ in range(2)]
    [mine] = api.get("/connections")
    assert (mine["name"], mine["state"]) == ("Alice", "Connected")
    made = Connection.objects.get(connection_id=mine["connectionId"])
    assert leads == [f"{url}/credentials/new?connection={made.pk}"] * 2
    assert "No definition yet" in browser.get(leads[0]).text
    api.defines("name", "year", name="Degree")
    # There is nothing to choose.
    form = browser.get(leads[0], follow=True).text
    assert f'value="{made.connection_id}" selected' in form
    api.defines("name", "year", name="Badge")
    choice = browser.get(leads[0]).text
    assert f"&amp;connection={made.pk}" in choice and "Badge" in choice


def test_a_full_quota_is_said_on_the_page(browser, url, settings):
    row = create(browser, url, owner_name="Alice")
    settings.QUOTA_CONNECTIONS = settings.QUOTA_WALLETS = 1
    answer = browser.send(f"{url}/wallets/new", owner_name="Bob")
    assert "QUOTA_WALLETS" in answer.text
    browser.send(f"{url}/connections/new")
    for action in ("connect", "issue"):
        answer = browser.send(f"{url}/wallets/{row.pk}/{action}")
        assert answer.url == f"{url}/wallets/{row.pk}"
        assert "QUOTA_CONNECTIONS" in read(browser, answer.url)


def test_a_wallet_is_deleted_after_its_name_is_typed(browser, url, api):
    row = create(browser, url, owner_name="Alice  Smith")
    path = f"{url}/wallets/{row.pk}/remove"
    wrong = browser.send(path, typed_name="alice")
    assert "This is not the name of the wallet." in wrong.text
    assert len(api.get("/api/wallets")) == 1
    answer = browser.send(path, typed_name="Alice Smith")
    assert answer.url == f"{url}/wallets" and api.get("/api/wallets") == []
    assert browser.get(path).status_code == 404
    assert AuditEntry.objects.filter(action="wallet.deleted").count() == 1


def test_a_personal_link_is_shown_once_and_revoked(browser, url, api):
    row = create(browser, url, owner_name="Alice")
    form = {"form_token": "one"}
    page = browser.post(f"{url}/wallets/{row.pk}/link", form).text
    [path] = set(re.findall(r"/w/agw_\w+", page))
    assert "data:image/svg+xml;base64," in page
    again = browser.post(f"{url}/wallets/{row.pk}/link", form)
    assert again.url == f"{url}/wallets/{row.pk}", "a form counts once"
    shown = read(browser, f"{url}/wallets/{row.pk}")
    assert "Nobody has chosen a PIN yet." in shown and "agw_" not in shown
    holder = Client()
    assert holder.get(path).status_code == 302
    holder.post("/w/pin", {"pin": "284615"})
    shown = read(browser, f"{url}/wallets/{row.pk}")
    assert "The holder chose a PIN" in shown
    browser.send(f"{url}/wallets/{row.pk}/link/revoke")
    assert Client().get(path).status_code == 404
    made = AuditEntry.objects.get(action="wallet.link_created")
    assert (made.actor_name, made.object_id) == ("fay@faber.example", str(row.pk))
    assert AuditEntry.objects.filter(action="wallet.link_revoked").count() == 1


def test_a_link_nobody_opened_in_time_has_ended_and_is_only_for_holders(browser, url):
    row = create(browser, url, owner_name="Alice")
    browser.send(f"{url}/wallets/{row.pk}/link")
    PersonalLink.objects.update(created_at=row.created_at - UNOPENED_FOR)
    shown = read(browser, f"{url}/wallets/{row.pk}")
    assert "Nobody chose a PIN in time." in shown and "Make a new link" in shown
    own = Wallet.objects.get(is_organization=True)
    for action in ("link", "link/revoke"):
        assert browser.send(f"{url}/wallets/{own.pk}/{action}").status_code == 404
