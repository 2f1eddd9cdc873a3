"""A passkey opens the web wallet in place of the PIN."""

import html
import json
import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.test import Client
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from agency.holders.wallet import links, passkeys
from agency.holders.wallet.models import WalletPasskey, WalletSession
from tenants import audit
from tenants.models import AuditEntry
from tests.agency.holders.wallet.conftest import (
    PIN,
    opens_wallet,
    refuses,
    wallet_of,
)
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
ADD, OPEN = "/w/passkeys/new", "/w/passkey"
FLAG = AuthenticatorData.FLAG


class Device:
    """What keeps a passkey, and asks its owner. count: how often it says it signed."""

    def __init__(self, count=0):
        self.key = ec.generate_private_key(ec.SECP256R1())
        public = ES256.from_cryptography_key(self.key.public_key())
        raw = self.key.public_key().public_numbers().x.to_bytes(32)
        self.id = websafe_encode(raw)
        self.data = AttestedCredentialData.create(Aaguid(b"\0" * 16), raw, public)
        self.count, self.flags = count, FLAG.UP | FLAG.UV
        self.origin = settings.PUBLIC_URL

    def client_data(self, kind, challenge):
        return CollectedClientData.create(
            type=kind, challenge=websafe_decode(challenge), origin=self.origin
        )

    def host_data(self, flags, **more):
        digest = hashes.Hash(hashes.SHA256())
        digest.update(urlsplit(settings.PUBLIC_URL).hostname.encode())
        return AuthenticatorData.create(digest.finalize(), flags, self.count, **more)

    def make(self, page):
        options, form = read(page)
        data = self.client_data("webauthn.create", options["challenge"])
        made = self.host_data(self.flags | FLAG.AT, credential_data=self.data)
        whole = AttestationObject.create("none", made, {})
        return self.answer(form, clientDataJSON=data, attestationObject=whole)

    def sign(self, page):
        options, form = read(page)
        assert self.id in [one["id"] for one in options["allowCredentials"]]
        assert options["userVerification"] == "required"
        data = self.client_data("webauthn.get", options["challenge"])
        host = self.host_data(self.flags)
        signed = self.key.sign(host + data.hash, ec.ECDSA(hashes.SHA256()))
        parts = {"authenticatorData": host, "signature": signed}
        return self.answer(form, clientDataJSON=data, **parts)

    def answer(self, form, **parts):
        response = {name: websafe_encode(part) for name, part in parts.items()}
        made = {"id": self.id, "rawId": self.id, "type": "public-key"}
        return form | {"credential": json.dumps(made | {"response": response})}


def read(page):
    """The options in a page, and the field of its form."""
    options = re.search(r'data-options="([^"]+)"', page.text)[1]
    state = re.search(r'name="state" value="([^"]+)"', page.text)[1]
    return json.loads(html.unescape(options)), {"state": html.unescape(state)}


@pytest.fixture
def device(wallet):
    """Alice's phone, whose passkey was added."""
    return adds(wallet, Device())


def adds(wallet, device):
    page = wallet.post(ADD, {"pin": PIN})
    assert wallet.post(ADD, device.make(page)).url == "/w/me"
    return device


def rests(wallet):
    """The session is over, and the browser knows the link."""
    wallet.cookies.pop("agency_wallet")
    return wallet.get("/w/pin")


def test_it_is_added_after_the_pin_and_opens_the_wallet(wallet, alice, device):
    assert "Passkey" in wallet.get("/w/me").text
    page = rests(wallet)
    assert "Open with a passkey" in page.text
    opened = wallet.post(OPEN, device.sign(page))
    assert (opened.status_code, opened.url) == (302, "/w/")
    assert wallet.get("/w/").status_code == 200
    [row] = WalletPasskey.objects.all()
    assert row.used_at and row.link.wallet == wallet_of(alice)
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert "wallet.passkey_added" in actions


def test_it_goes_on_with_the_link_by_which_the_holder_came(wallet, device):
    page = rests(wallet)
    opened = wallet.post(OPEN, device.sign(page) | {"take": "abc"})
    assert opened.url == "/w/take/abc"


def test_without_a_passkey_the_page_asks_for_the_pin_alone(wallet):
    assert "data-passkey" not in rests(wallet).text
    refuses(wallet.post(OPEN, {}), 403, "passkey_refused")


def test_the_pin_comes_first(wallet):
    refused = wallet.post(ADD, {"pin": "271828"})
    assert refused.status_code == 403 and "data-options" not in refused.text
    assert "data-options" not in wallet.get(ADD).text
    refused = wallet.post(ADD, {"state": "x", "credential": "{}"})
    assert refused.status_code == 403
    assert not WalletPasskey.objects.exists()


def test_an_answer_is_taken_once_and_ends_those_before(wallet, device):
    first, second = rests(wallet), wallet.get("/w/pin")
    answers = [device.sign(first), device.sign(second)]
    assert wallet.post(OPEN, answers[1]).status_code == 302
    for answer in reversed(answers):
        refuses(wallet.post(OPEN, answer), 403, "passkey_refused")


def test_of_two_browsers_with_one_answer_one_is_let_in(wallet, device, alice):
    answer = device.sign(rests(wallet))
    link = WalletPasskey.objects.get().link
    tried = at_once(*[lambda: passkeys.check_passkey(link, answer, "::1")] * 2)
    assert sorted(str(getattr(one, "code", one)) for one in tried) == [
        "None",
        "passkey_refused",
    ]


def test_a_device_that_counts_must_have_counted_on(wallet):
    device = adds(wallet, Device(count=7))
    for count, status in ((7, 403), (8, 302), (8, 403), (6, 403), (0, 403)):
        device.count = count
        answer = device.sign(wallet.get("/w/pin"))
        assert wallet.post(OPEN, answer).status_code == status, count


def change_origin(device):
    device.origin = "https://testserver.example"


def ask_nobody(device):
    device.flags = FLAG.UP


def use_another_key(device):
    device.key = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize("change", [change_origin, ask_nobody, use_another_key])
def test_what_does_not_come_from_its_owner_here_is_refused(wallet, device, change):
    change(device)
    refuses(wallet.post(OPEN, device.sign(rests(wallet))), 403, "passkey_refused")
    assert WalletSession.objects.count() == 1


@pytest.mark.parametrize("change", [change_origin, ask_nobody])
def test_a_passkey_that_asks_nobody_is_not_added(wallet, change):
    device = Device()
    change(device)
    page = wallet.post(ADD, {"pin": PIN})
    assert wallet.post(ADD, device.make(page)).status_code == 403
    assert not WalletPasskey.objects.exists()


def test_one_that_is_too_long_to_store_is_refused(wallet):
    device = Device()
    long = b"i" * 4096
    device.id = websafe_encode(long)
    device.data = AttestedCredentialData.create(
        Aaguid(b"\0" * 16), long, ES256.from_cryptography_key(device.key.public_key())
    )
    page = wallet.post(ADD, {"pin": PIN})
    assert wallet.post(ADD, device.make(page)).status_code == 403
    assert not WalletPasskey.objects.exists()


def test_the_address_of_the_server_may_be_spelled_in_any_way(wallet, settings):
    settings.PUBLIC_URL = "https://Agency.Example:443"
    device = Device()
    device.origin = "https://agency.example"
    adds(wallet, device)


def test_what_a_browser_may_send_instead_is_refused(wallet, device):
    _, form = read(rests(wallet))
    for sent in ("", "x", "[]", "{}", '{"id": 1}', "[" * 10000, "9" * 30000, "null"):
        answer = wallet.post(OPEN, form | {"credential": sent})
        refuses(answer, 403, "passkey_refused")


def test_a_challenge_is_for_five_minutes_and_one_use(wallet, device, monkeypatch):
    page = wallet.post(ADD, {"pin": PIN})
    made = Device().make(page)
    answer = device.sign(rests(wallet))
    mixed = answer | {"state": made["state"]}
    refuses(wallet.post(OPEN, mixed), 403, "passkey_refused")
    monkeypatch.setattr(passkeys, "ANSWERED_WITHIN", timedelta(0))
    refuses(wallet.post(OPEN, answer), 403, "passkey_refused")


def test_one_of_another_wallet_opens_nothing_and_is_not_removed(wallet, device, faber):
    other = opens_wallet(faber.hosts("Eve"))
    other.post(f"/w/passkeys/{WalletPasskey.objects.get().pk}/remove")
    assert WalletPasskey.objects.exists()
    answer = device.sign(rests(wallet))
    rests(other)
    refuses(other.post(OPEN, answer), 403, "passkey_refused")
    stranger = Client(headers={"Accept": "text/html"})
    assert stranger.post(OPEN, answer).url == "/w/left"


def test_it_is_removed(wallet, device):
    page = rests(wallet)
    answer = device.sign(page)
    wallet.post("/w/pin", {"pin": PIN})
    [row] = WalletPasskey.objects.all()
    for _ in range(2):
        removed = wallet.post(f"/w/passkeys/{row.pk}/remove")
        assert removed.url == "/w/me"
    assert not WalletPasskey.objects.exists()
    removed = AuditEntry.objects.filter(action="wallet.passkey_removed")
    assert removed.count() == 1
    refuses(wallet.post(OPEN, answer), 403, "passkey_refused")


def test_a_new_personal_link_ends_it(wallet, alice, device):
    answer = device.sign(rests(wallet))
    made = links.create_link(wallet_of(alice), by=audit.SYSTEM)
    assert not WalletPasskey.objects.exists()
    wallet.post("/w/leave")
    browser = opens_wallet(alice, f"/w/{made.token}")
    rests(browser)
    refuses(browser.post(OPEN, answer), 403, "passkey_refused")


def test_there_are_five_and_the_same_again_is_one(wallet, device):
    page = wallet.post(ADD, {"pin": PIN})
    assert wallet.post(ADD, device.make(page)).status_code == 302
    assert WalletPasskey.objects.count() == 1
    for _ in range(4):
        adds(wallet, Device())
    page = wallet.post(ADD, {"pin": PIN})
    refused = wallet.post(ADD, Device().make(page))
    assert refused.status_code == 409 and "five passkeys" in refused.text
    assert "/w/passkeys/new" not in wallet.get("/w/me").text


def test_tries_are_limited(wallet, device, monkeypatch):
    monkeypatch.setattr(passkeys, "A_MINUTE", 1)
    rests(wallet)
    assert [wallet.post(OPEN, {}).status_code for _ in range(2)] == [403, 429]
