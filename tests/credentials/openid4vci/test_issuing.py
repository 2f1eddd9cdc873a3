"""From an offer to the credential in a wallet of OpenID4VC."""

import secrets
import time
from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credentials.models import Credential, DefinitionFormat, Grant, TokenStatusList
from tests.support.openid_wallet import OpenIdWallet
from tests.support.races import at_once
from wallets.jose import certificates, sd_jwt, signing, status_token
from wallets.models import Authority, issuer_url


def signer_of(credential):
    chain = certificates.read_chain(credential.token.header["x5c"])
    anchors = [Authority.live().read_certificate()]
    certificates.verify_chain(chain, anchors, timezone.now())
    return chain[0]


def test_a_wallet_gets_what_was_offered(faber, card, offers, phone):
    made = offers()
    assert (made["state"], made["format"]) == ("Offered", "dc+sd-jwt")
    held = phone.take(made["link"])
    leaf = signer_of(held)
    held.verify(certificates.key_of(leaf))
    held.check_times(time.time())
    assert certificates.names_of(leaf)[0] == {issuer_url(faber.tenant.pk)}
    said = held.claims
    assert (said["vct"], said["iss"]) == (card["vct"], issuer_url(faber.tenant.pk))
    assert said["cnf"] == {"jwk": phone.jwk}
    assert said["iat"] % 3600 == 0 and said["exp"] == said["iat"] + 365 * 86_400
    assert {name: said[name] for name in ("Full name", "born", "year", "paid")} == {
        "Full name": "Alice Smith",
        "born": "1990-01-31",
        "year": 7,
        "paid": True,
    }
    assert said["age_over_18"] is True
    assert "Full name" not in held.token.payload
    shown = faber.get(f"/credentials/{made['credentialId']}")
    assert (shown["state"], shown["values"]["born"]) == ("Issued", "19900131")
    assert "walletLinks" not in shown


def test_each_step_is_an_event_with_its_format(faber, offers, phone):
    phone.take(offers()["link"])
    bodies = [event["body"] for event in faber.get("/events")]
    found = {body["state"]: body["data"]["format"] for body in bodies}
    assert found == dict.fromkeys(("Offered", "Requested", "Issued"), "dc+sd-jwt")


def test_it_may_bind_its_token(offers, phone):
    phone.dpop_secret = signing.generate_secret()
    phone.open(offers()["link"])
    assert phone.take_token()["token_type"] == "DPoP"
    assert phone.keep(phone.ask())


def test_the_holder_needs_the_code_that_is_shown_once(faber, offers, phone):
    made = offers(transactionCode=True)
    code = made["transactionCode"]
    assert len(code) == 6 and code.isdecimal()
    assert "transactionCode" not in faber.get(f"/credentials/{made['credentialId']}")
    grant = Grant.objects.get()
    assert code.encode() not in bytes(grant.transaction_code)
    assert phone.take(made["link"], code)


def test_by_hand_the_wallet_asks_again(faber, offers, phone):
    made = offers(automaticIssuance=False)
    path = f"/credentials/{made['credentialId']}"
    phone.open(made["link"])
    phone.take_token()
    response = phone.ask()
    assert response.status_code == 202
    waiting = response.json()
    assert waiting["interval"] == 5
    assert faber.get(path)["state"] == "Requested"
    assert phone.ask_later(waiting["transaction_id"]).status_code == 202
    faber.put(path, {})
    assert faber.get(path)["state"] == "Issued"
    issued = phone.ask_later(waiting["transaction_id"])
    assert phone.keep(issued)
    assert "notification_id" not in issued.json()  # Credo does not read it
    again = phone.ask_later(waiting["transaction_id"])
    assert again.json() == issued.json(), "the first answer may be lost"
    Grant.objects.update(served_at=timezone.now() - timedelta(seconds=60))
    again = phone.ask_later(waiting["transaction_id"])
    assert again.json()["error"] == "invalid_transaction_id"


def test_a_lost_answer_is_given_again(offers, phone):
    phone.open(offers()["link"])
    phone.take_token()
    body = phone.request()
    first = phone.ask(body).json()
    assert phone.ask(body).json() == first  # the very same request
    assert phone.ask().json() == first  # with a new nonce
    assert Credential.objects.get().state == "Issued"
    other = OpenIdWallet()
    other.offer, other.issuer, other.token = phone.offer, phone.issuer, phone.token
    assert other.ask().json()["error"] == "credential_request_denied"


def test_what_fails_on_the_way_is_undone_and_asked_for_again(
    offers, phone, monkeypatch
):
    phone.open(offers()["link"])
    phone.take_token()
    body = phone.request()

    def crash(*arguments):
        raise SystemError("the process is killed here")

    with monkeypatch.context() as patched:
        patched.setattr(DefinitionFormat, "sign_credential", crash)
        assert phone.ask(body).status_code == 500
    assert Credential.objects.get().state == "Offered"
    assert not TokenStatusList.objects.exists()
    first = phone.ask(body)
    place = place_of(phone.keep(first))
    assert place_of(phone.keep(phone.ask())) == place
    assert phone.ask().json() == first.json()
    assert TokenStatusList.objects.get().used == 1


def test_a_crowd_behind_one_address_is_served_while_a_card_is_revoked(faber, offers):
    lost = offers()
    wallet = OpenIdWallet()
    held = wallet.take(lost["link"])
    links = [offers()["link"] for _ in range(50)]

    def serve(links):
        cards = []
        for link in links:
            phone = OpenIdWallet()
            phone.open(link)
            phone.metadata()
            phone.metadata("oauth-authorization-server")
            phone.take_token()
            cards.append(place_of(phone.keep(phone.ask())))
        return cards

    def revoke():
        faber.delete(f"/credentials/{lost['credentialId']}")
        return []

    queues = [links[start::5] for start in range(5)]
    served = at_once(revoke, *[lambda queue=queue: serve(queue) for queue in queues])
    cards = [card for cards in served for card in cards]
    assert len({card["idx"] for card in cards}) == 50
    assert status_of(wallet, place_of(held)) == 1
    row = TokenStatusList.objects.get()
    assert row.used == 51 and int.from_bytes(row.bits).bit_count() == 1


def status_of(phone, listed):
    """What everybody reads at the place of a credential now.

    It is signed by the key of the credential: Credo checks it with no other.
    """
    response = phone.read(listed["uri"])
    assert response["Content-Type"] == "application/statuslist+jwt"
    assert response["Access-Control-Allow-Origin"] == "*"
    found = status_token.parse_token(
        response.content.decode(), listed["uri"], time.time()
    )
    assert signer_of(found) == signer_of(sd_jwt.read(phone.credential))
    found.token.verify(certificates.key_of(signer_of(found)))
    return found.status_of(listed["idx"])


def place_of(held):
    return held.claims["status"]["status_list"]


def test_revoking_sets_the_bit_that_is_served(faber, offers, phone):
    made = offers()
    listed = place_of(phone.take(made["link"]))
    assert status_of(phone, listed) == 0
    faber.delete(f"/credentials/{made['credentialId']}")
    assert status_of(phone, listed) == 1
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Revoked"


def test_many_are_revoked_by_one_change_of_their_list(faber, card, offers, phone):
    cards = [place_of(phone.take(offers()["link"])) for _ in range(4)]
    kept = faber.get("/credentials")[0]["credentialId"]
    chosen = [row["credentialId"] for row in faber.get("/credentials")[1:]]
    with CaptureQueriesContext(connection) as captured:
        answer = faber.post("/credentials/revoke", {"credentialIds": chosen})
    assert answer == {"issued": 0, "revoked": 3}
    changes = 'UPDATE "credentials_tokenstatuslist"'
    assert sum(changes in one["sql"] for one in captured) == 1
    assert [status_of(phone, listed) for listed in cards] == [1, 1, 1, 0]
    assert faber.get(f"/credentials/{kept}")["state"] == "Issued"


def test_lists_have_131072_places_and_half_of_them_are_given(offers):
    def take():
        return place_of(OpenIdWallet().take(offers()["link"]))["uri"][-2:]

    assert take() == "/1"
    first = TokenStatusList.objects.get()
    assert len(first.bits) * 8 == 131_072
    TokenStatusList.objects.update(used=65_535)
    assert [take(), take(), take()] == ["/1", "/2", "/2"]


def test_the_place_of_a_deleted_credential_is_not_given_again(
    faber, offers, phone, monkeypatch
):
    drawn = iter([5, 5, 6])
    monkeypatch.setattr(secrets, "randbelow", lambda size: next(drawn))
    made = offers()
    phone.take(made["link"])
    faber.delete(f"/credentials/{made['credentialId']}")
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    assert not Credential.objects.exists()
    listed = place_of(phone.take(offers()["link"]))
    assert listed["idx"] == 6
    assert status_of(phone, listed | {"idx": 5}) == 1
    assert status_of(phone, listed) == 0


def test_wallets_say_what_became_of_it(offers, phone):
    phone.open(offers()["link"])
    phone.take_token()
    told = phone.ask().json()["notification_id"]
    body = {"notification_id": told, "event": "credential_accepted"}
    for _ in range(2):
        response = phone.post("notification", body, **phone.authorization(""))
        assert response.status_code == 204
    assert Grant.objects.get().notified == "credential_accepted"
