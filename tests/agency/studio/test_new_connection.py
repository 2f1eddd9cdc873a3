"""Inviting in the studio: what the page makes is what the API makes."""

import json
import re
from html import unescape
from urllib.parse import unquote

import pytest

from agency.studio.new_connection import PERIODS
from connections.didcomm import message as didcomm
from connections.models import Connection
from tenants.models import AuditEntry, Tenant
from tests.factories import NetworkFactory
from tests.support.people import Organization

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(stored_keys):
    return Organization("Acme").hosts("Alice")


def invite(browser, url, **fields):
    """Send the form; return the new connection and its page."""
    answer = browser.send(f"{url}/connections/new", **fields)
    assert answer.status_code == 302, answer.text
    row = Connection.objects.latest("pk")
    assert answer.url == f"{url}/connections/{row.pk}"
    return row, browser.get(answer.url).text


def test_a_new_invitation_has_its_link_and_its_qr_code(browser, url, api, alice):
    row, page = invite(browser, url, name="Alice", form_token="one")
    browser.send(f"{url}/connections/new", name="Alice", form_token="one")
    assert Connection.objects.count() == 1, "a form counts once"
    assert row.invitation_url in page and f"/i/{row.token}/qr.svg" in page
    invited = api.get(f"/connections/{row.connection_id}")
    assert (invited["name"], invited["state"]) == ("Alice", "Invited")
    assert not invited["multiParty"] and "confirmConnections" not in invited
    page = unescape(page)
    [(first, second)] = re.findall(
        r">didcomm://launch/\?c_i=([^<&]+)&oob=([^<]+)<", page
    )
    assert didcomm.decode_json(unquote(first)) == row.invitation
    assert didcomm.decode_json(unquote(second)) == row.out_of_band
    [shown] = re.findall(r'<pre id="invitation-json"[^>]*>(.*?)</pre>', page, re.S)
    assert json.loads(shown) == row.out_of_band
    alice.accepts_invitation(shown)
    assert api.get(f"/connections/{row.connection_id}")["state"] == "Connected"
    entry = AuditEntry.objects.get(action="connection.invited")
    assert (entry.actor_name, entry.object_id) == ("fay@faber.example", str(row.pk))


def test_on_the_local_network_pages_say_which_wallets_can_take_a_card(browser, url):
    said = "can take a card"
    _, page = invite(browser, url)
    for shown in (
        page,
        browser.get(url).text,
        browser.get(f"{url}/connections/new").text,
    ):
        assert said in shown and "/ledger/local/" in shown
    Tenant.objects.update(network=NetworkFactory())
    _, page = invite(browser, url)
    for shown in (
        page,
        browser.get(url).text,
        browser.get(f"{url}/connections/new").text,
    ):
        assert said not in shown


def test_every_choice_of_the_page_is_one_of_the_api(browser, url, api, settings):
    plain = {"protocol": "connections/1.0", "goal": "To say hello"}
    answer = browser.send(f"{url}/connections/new", **plain)
    assert "This needs the protocol out-of-band." in answer.text
    assert not Connection.objects.exists()
    chosen = {"multi_party": "many", "goal": "To say hello"}
    chosen |= {"protocol": "out-of-band"}
    row, _ = invite(browser, url, expires="day", **chosen)
    invited = api.get(f"/connections/{row.connection_id}")
    assert invited["multiParty"] is True
    assert row.invitation["goal"] == "To say hello"
    assert row.invitation["@type"].endswith("out-of-band/1.1/invitation")
    assert abs(row.expires_at - row.created_at - PERIODS["day"][1]).seconds < 60
    settings.QUOTA_CONNECTIONS = 1
    assert "QUOTA_CONNECTIONS" in browser.send(f"{url}/connections/new").text
    assert Connection.objects.count() == 1


def test_a_request_that_waits_is_accepted_on_its_page(browser, url, api, alice):
    row, page = invite(browser, url, confirm_connections="on")
    path = f"{url}/connections/{row.pk}"
    assert "Accept the request" not in page
    answer = browser.send(f"{path}/accept")
    assert "No request waits" in browser.get(answer.url).text
    mine = alice.accepts_invitation(
        api.get(f"/connections/{row.connection_id}")["invitation"]
    )
    assert mine["state"] == "Negotiating"
    assert "Accept the request" in browser.get(path).text
    browser.send(f"{path}/accept")
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"
    assert AuditEntry.objects.filter(action="connection.accepted").count() == 1


def test_deleting_a_connection_refuses_its_request(browser, url, api, alice):
    row, _ = invite(browser, url, confirm_connections="on")
    invited = api.get(f"/connections/{row.connection_id}")
    mine = alice.accepts_invitation(invited["invitation"])
    row.refresh_from_db()
    name = row.name or row.connection_id
    browser.send(f"{url}/connections/{row.pk}/remove", typed_name=name)
    refused = Connection.objects.get(connection_id=mine["connectionId"])
    assert refused.problem == "request_not_accepted"
