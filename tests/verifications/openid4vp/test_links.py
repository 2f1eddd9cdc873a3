"""The page of a link for wallets of OpenID4VP, and kiosks that ask them."""

from urllib.parse import urlsplit

import pytest
import zxingcpp
from django.test import Client
from PIL import Image

from tests.support.errors import assert_error, error_of

pytestmark = pytest.mark.django_db(transaction=True)


def path_of(asked):
    return urlsplit(asked["verificationRequestUrl"]).path


def test_the_page_opens_the_wallet_by_button_and_code(ask, tmp_path):
    asked = ask()
    link = asked["walletLinks"]["openid4vp"]
    page = Client().get(path_of(asked), headers={"Accept": "text/html"})
    assert page.status_code == 200 and "Full name" in page.content.decode()
    opened = Client().get(f"{path_of(asked)}/wallet")
    assert (opened.status_code, opened["Location"]) == (302, link)
    picture = tmp_path / "code.png"
    picture.write_bytes(Client().get(f"{path_of(asked)}/qr.png").content)
    [code] = zxingcpp.read_barcodes(Image.open(picture))
    assert code.text == link


def test_the_page_says_when_it_is_done(ask, held):
    asked = ask()
    held.answer(asked["walletLinks"]["openid4vp"])
    assert Client().get(path_of(asked)).status_code == 410


def test_a_kiosk_asks_wallets_of_openid4vp(acme, card_policy, held):
    stored = acme.post("/verificationPolicies", card_policy)
    body = {"name": "Door", "policyId": stored["policyId"], "protocol": "openid4vp"}
    kiosk = acme.post("/kiosks", body)
    assert kiosk["protocol"] == "openid4vp"
    assert acme.get(f"/kiosks/{kiosk['kioskId']}")["protocol"] == "openid4vp"
    Client().post(f"{urlsplit(kiosk['url']).path}/screen")
    [asked] = acme.get("/verifications")
    held.answer(asked["walletLinks"]["openid4vp"])
    assert acme.get(f"/verifications/{asked['verificationId']}")["isValid"]


def test_a_kiosk_asks_only_what_can_be_proven(acme, card_policy):
    policy = card_policy | {"attributes": [{"policyName": "iban"}]}
    stored = acme.post("/verificationPolicies", policy)
    body = {"name": "Door", "policyId": stored["policyId"], "protocol": "openid4vp"}
    assert_error(error_of(acme.post, "/kiosks", body), 409, "not_provable")


def test_what_only_messages_have_is_refused(acme, card_policy):
    for more in (
        {"handshakes": ["connections/1.0"]}, {"goal": "x"}, {"usePublicDid": True},
        {"exchangeVersion": "2.0"}, {"attachmentFormat": "hlindy"},
    ):  # fmt: skip
        body = card_policy | {"protocol": "openid4vp"} | more
        error = error_of(acme.post, "/verifications/policy", body)
        assert_error(error, 400, "invalid_request")


def test_a_stored_policy_is_asked_by_either_protocol(acme, card_policy, held):
    stored = acme.post("/verificationPolicies", card_policy)
    path = f"/verifications/policy/{stored['policyId']}"
    asked = acme.put(path, {"protocol": "openid4vp"})
    assert asked["definitionId"] == stored["policyId"]
    held.answer(asked["walletLinks"]["openid4vp"])
    assert acme.get(f"/verifications/{asked['verificationId']}/verify")["valid"]
    by_didcomm = acme.put(path)
    assert by_didcomm["format"] == "anoncreds" and "walletLinks" not in by_didcomm


OF_PHONES = {
    "name": "Phones", "version": "1.0",
    "attributes": [{"policyName": "name", "restrictions": [{"vct": "urn:eu:pid"}]}],
}  # fmt: skip


def test_didcomm_does_not_ask_for_what_only_phones_have(acme):
    stored = acme.post("/verificationPolicies", OF_PHONES)["policyId"]
    for call, path, body in (
        (acme.post, "/verifications/policy", OF_PHONES),
        (acme.put, f"/verifications/policy/{stored}", {}),
        (acme.post, "/kiosks", {"name": "Door", "policyId": stored}),
    ):
        assert_error(error_of(call, path, body), 409, "not_provable")
