"""Without a network a phone shows name, color and state of cards, and no value."""

import json
import re

import pytest
from django.test import Client

from agency.holders.wallet import sessions
from credentials.models import CredentialDefinition
from tenants.models import Tenant
from tests.agency.holders.wallet.conftest import (
    VALUES,
    link_of,
    opens_wallet,
    wallet_of,
)
from tests.support.chromium import MARKS

ARABIC = {"Accept-Language": "ar"}
# Letters, what turns the direction of text, markup, and a picture.
HOSTILE = '\u202eevil"><img src=x onerror=alert(1)>\U0001f480' + "W" * 166


def kept_by(wallet):
    page = wallet.get("/w/")
    [kept] = re.findall(r'data-kept="([^"]*)"', page.text)
    return kept


class TestWhatIsKept:
    def test_it_is_name_color_and_state_and_no_value(self, wallet, card):
        kept = json.loads(kept_by(wallet).replace("&quot;", '"'))
        assert kept == {
            "key": wallet.cookies[sessions.KEPT_COOKIE].value,
            "organization": "Faber College",
            "cards": [
                {
                    "name": "Degree",
                    "color": "#0b6b62",
                    "isDark": True,
                    "isOver": False,
                    "state": "Valid",
                }
            ],
        }

    def test_of_an_expired_card_it_says_so_and_not_when(self, wallet, faber, alice):
        member = faber.defines("valid until", name="Member")
        alice.receives(faber, member, {"valid until": "20200229"})
        kept = kept_by(wallet)
        assert "Expired" in kept and "2020" not in kept

    def test_its_key_is_of_the_session_and_ends_with_it(self, alice):
        wallet = opens_wallet(alice)
        key = wallet.cookies[sessions.KEPT_COOKIE]
        assert key["max-age"] == sessions.LONGEST.total_seconds()
        assert key["path"] == "/w/" and not key["httponly"]
        assert opens_wallet(alice).cookies[sessions.KEPT_COOKIE].value != key.value
        wallet_of(alice).personal_link.sessions.all().delete()
        assert wallet.get("/w/").url == "/w/pin"
        assert not wallet.cookies[sessions.KEPT_COOKIE].value

    def test_older_cards_and_a_session_without_a_key_keep_nothing(self, wallet, card):
        assert "data-kept" not in wallet.get(f"/w/?before={'f' * 32}").text
        del wallet.cookies[sessions.KEPT_COOKIE]
        assert "data-kept" not in wallet.get("/w/").text

    def test_signing_out_removes_it_from_the_browser(self, wallet):
        answer = wallet.post("/w/leave")
        assert answer["Clear-Site-Data"] == '"storage"'
        assert not wallet.cookies[sessions.KEPT_COOKIE].value


@pytest.mark.django_db
class TestTheWorker:
    def test_it_sees_the_pages_of_wallets_and_reads_only_from_here(self):
        answer = Client().get("/w/worker.js")
        assert answer["Content-Type"].startswith("text/javascript")
        assert "no-store" in answer["Cache-Control"]
        policy = answer["Content-Security-Policy"]
        assert policy == "default-src 'none'; script-src 'self'; connect-src 'self'"
        assert "Service-Worker-Allowed" not in answer
        assert "importScripts(" in answer.text and "/static/agency/" in answer.text

    def test_it_changes_with_the_page_that_it_keeps(self):
        texts = {
            Client().get("/w/worker.js", headers={"Accept-Language": one}).text
            for one in ("en", "ar", "en")
        }
        assert len(texts) == 2

    def test_its_page_is_the_same_for_everybody(self, wallet, card):
        page = Client().get("/w/offline", headers=ARABIC)
        assert page.text == wallet.get("/w/offline", headers=ARABIC).text
        assert 'dir="rtl"' in page.text and "Faber" not in page.text
        assert "no-store" in page["Cache-Control"]


# All that a browser has of this site, as one text.
STORED = """(async () => {
  const found = [JSON.stringify(localStorage), JSON.stringify(sessionStorage)];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      found.push(request.url, await (await cache.match(request, {ignoreVary: true})).text());
    }
  }
  for (const {name} of await indexedDB.databases()) found.push(name);
  return found.join("\\n");
})()"""
ACTIVE = "navigator.serviceWorker.ready.then((one) => one.active.state === 'activated')"
CARD = "document.querySelector('#kept-cards .id-card')"
SHOWN = f"!!{CARD}"


class TestInABrowser:
    pytestmark = MARKS

    @pytest.fixture
    def phone(self, page, wallet, card):
        page.sign_in(wallet)
        page.resize(390, 844)
        yield page
        page.tab.context.set_offline(False)

    def go_offline(self, page, address="/w/", ready=SHOWN):
        page.tab.context.set_offline(True)
        page.open(address, ready=ready)

    def opens_cards(self, page):
        page.open("/w/", ready=ACTIVE)

    def test_a_phone_can_install_it(self, phone):
        phone.open("/w/")
        found = phone.call("Page.getAppManifest")
        assert found["errors"] == [] and found["url"].endswith("/w/manifest.json")
        told = json.loads(found["data"])
        assert told["start_url"].startswith(told["scope"])
        for icon in told["icons"]:
            size = f"fetch('{icon['src']}').then((one) => one.blob())"
            size += ".then((one) => one.type)"
            assert phone.evaluate(size) == icon["type"]
        errors = phone.call("Page.getInstallabilityErrors")["installabilityErrors"]
        assert errors == []

    def test_offline_it_shows_the_cards_and_that_they_are_old(self, phone):
        self.opens_cards(phone)
        self.go_offline(phone)
        text = phone.text("main")
        assert "Degree" in text and "Valid" in text and "Faber College" in text
        assert "You are offline." in text and re.search(r"on \d+ \w+ \d{4}", text)
        assert phone.evaluate(f"{CARD}.querySelector('rect').getAttribute('fill')") == (
            "#0b6b62"
        )
        self.go_offline(phone, "/w/me")
        phone.tab.context.set_offline(False)
        phone.evaluate("dispatchEvent(new Event('online'))")
        phone.wait_for("document.title === 'Me'")

    def test_it_speaks_as_the_wallet_does(self, phone, faber):
        faber.tenant.default_language = "ar"
        faber.tenant.save()
        phone.tab.context.set_extra_http_headers({"Accept-Language": "fi"})
        self.opens_cards(phone)
        self.go_offline(phone)
        assert phone.evaluate("document.documentElement.dir") == "rtl"
        assert "صالحة" in phone.text("main")
        assert "غير متصل" in phone.text("main")

    def test_no_value_is_anywhere_in_the_browser(self, phone):
        self.opens_cards(phone)
        for address in ("/w/inbox", "/w/history", "/w/me", "/w/show"):
            phone.open(address)
        stored = phone.evaluate(STORED)
        assert "Degree" in stored and "/w/offline" in stored
        for value in [*VALUES.values(), "Alice", "Your cards stay", "/w/me"]:
            assert value not in stored, value

    def test_signing_out_removes_everything(self, phone):
        self.opens_cards(phone)
        phone.open("/w/leave")
        phone.tab.click("button:text-is('Sign out')")
        phone.tab.wait_for_selector("text=You are signed out")
        assert phone.evaluate(STORED) == "{}\n{}"
        gone = "navigator.serviceWorker.getRegistration('/w/').then((one) => !one)"
        assert phone.evaluate(gone)

    def test_an_ended_session_keeps_nothing(self, phone, alice):
        self.opens_cards(phone)
        wallet_of(alice).personal_link.sessions.all().delete()
        phone.tab.goto("/w/")
        phone.tab.wait_for_selector("text=Enter your PIN")
        assert "Degree" not in phone.evaluate(STORED)
        self.go_offline(phone, ready="true")
        assert "no cards are kept" in phone.text("main")
        assert not phone.evaluate(SHOWN)

    def test_another_wallet_does_not_see_them(self, phone, faber):
        self.opens_cards(phone)
        bob = opens_wallet(faber.hosts("Bob"))
        phone.sign_in(bob)
        # His first page without a network, before any that has one.
        self.go_offline(phone, ready="true")
        assert "Degree" not in phone.text("main")
        assert "Degree" not in phone.evaluate(STORED)
        phone.tab.context.set_offline(False)
        self.opens_cards(phone)
        assert '"cards":[]' in phone.evaluate("localStorage.getItem('wallet-cards')")

    def test_the_link_of_another_wallet_does_not_show_them(self, phone, faber):
        self.opens_cards(phone)
        link = link_of(faber.hosts("Bob"))
        phone.tab.context.set_offline(True)
        with pytest.raises(AssertionError, match="ERR_INTERNET_DISCONNECTED"):
            phone.open(link)

    def test_a_new_worker_replaces_the_former(self, phone, monkeypatch):
        self.opens_cards(phone)
        [before] = phone.evaluate("caches.keys()")
        monkeypatch.setattr("agency.holders.wallet.pages.public_host", lambda: "new")
        phone.open("/w/")
        phone.wait_for(f"caches.keys().then((all) => all != {json.dumps(before)})")
        phone.wait_for("caches.keys().then((all) => all.length === 1)")

    def test_hostile_names_stay_on_their_card(self, phone):
        display = {"names": {"en": HOSTILE}, "colors": {"background": "#ffffff"}}
        CredentialDefinition.objects.update(display=display)
        Tenant.objects.update(name=HOSTILE[:100])
        self.opens_cards(phone)
        self.go_offline(phone)
        assert phone.evaluate(f"{CARD}.querySelector('bdi').textContent") == HOSTILE
        assert phone.evaluate("!document.querySelector('main img')")
        for width in (390, 320):
            phone.resize(width, 844)
            assert phone.too_wide() == []

    def test_without_workers_the_wallet_is_as_before(self, phone):
        phone.tab.add_init_script(
            "Object.defineProperty(navigator, 'serviceWorker', {value: undefined});"
            "Object.defineProperty(window, 'localStorage', {get() { throw Error(); }})"
        )
        phone.open("/w/")
        assert "Degree" in phone.text("main")

    def test_the_offline_page_is_accessible(self, phone, axe):
        self.opens_cards(phone)
        for scheme in ("dark", "light"):
            phone.prefer(scheme)
            self.go_offline(phone)
            assert phone.findings() == []
