"""From a request to the verdict, with a wallet that calls the public routes only."""

import json

import pytest
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey

from tests.support.races import at_once
from wallets.jose import encryption, sd_jwt, signing
from wallets.models import SigningKey, issuer_url
from webhooks.events.types import Type
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_wallet_answers_what_is_asked(acme, ask, held):
    asked = ask()
    assert (asked["state"], asked["format"]) == ("Requested", "dc+sd-jwt")
    response = held.answer(asked["walletLinks"]["openid4vp"])
    assert (response.status_code, response.json()) == (200, {})
    seen = acme.get(f"/verifications/{asked['verificationId']}")
    assert (seen["state"], seen["isValid"]) == ("Accepted", True), seen["checks"]
    assert seen["proof"]["who"]["attributes"] == {"Full name": "Alice Smith"}
    assert seen["proof"]["year"]["value"] == "7"
    assert seen["proof"]["adult"]["value"] == "true"
    assert {one["format"] for one in seen["proof"].values()} == {"dc+sd-jwt"}
    assert "walletLinks" not in seen


def verification(acme, asked):
    return acme.get(f"/verifications/{asked['verificationId']}")


def codes(seen):
    assert (seen["state"], seen["isValid"]) == ("Accepted", False)
    return {one["code"] for one in seen["checks"] if one["status"] == "fail"}


def test_a_request_is_signed_and_read_as_often_as_the_wallet_likes(ask, held):
    link = ask()["walletLinks"]["openid4vp"]
    first = held.read_request(link)
    assert held.read_request(link) == first
    assert held.read_request(link, wallet_nonce="n1")["wallet_nonce"] == "n1"
    by_get = held.read(held.query["request_uri"])
    assert by_get["Content-Type"] == "application/oauth-authz-req+jwt"
    assert by_get["Cache-Control"] == "no-store"
    assert by_get["Access-Control-Allow-Origin"] == "*"
    assert first["client_id"] == held.query["client_id"]
    assert first["aud"] == "https://self-issued.me/v2"
    assert (first["response_type"], first["response_mode"]) == (
        "vp_token",
        "direct_post.jwt",
    )
    assert "redirect_uri" not in first
    [key] = first["client_metadata"]["jwks"]["keys"]
    assert (key["use"], key["alg"]) == ("enc", "ECDH-ES") and "d" not in key


def test_each_request_has_its_own_key_nonce_and_state(ask, held):
    read = [held.read_request(ask()["walletLinks"]["openid4vp"]) for _ in range(2)]
    for name in ("nonce", "state", "response_uri"):
        assert read[0][name] != read[1][name]
    keys = [one["client_metadata"]["jwks"]["keys"][0]["x"] for one in read]
    assert keys[0] != keys[1] and read[0]["client_id"] == read[1]["client_id"]


NOT_ENCRYPTED = [
    {}, {"response": ""}, {"response": "x"}, {"error": "access_denied"},
    {"vp_token": "{}", "state": "x"},
    {"response": f"{signing.encode_base64url(b'[' * 3000)}..AAAA.AAAA.AAAA"},
]  # fmt: skip


def assert_left_open(acme, asked, response):
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert verification(acme, asked)["state"] == "Requested"


def test_what_is_not_encrypted_leaves_the_request_open(acme, ask, held, subtests):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    state = held.request_object["state"]
    honest = {"vp_token": json.dumps(held.vp_token()), "state": state}
    for wrong in (*NOT_ENCRYPTED, honest, {"response": json.dumps(honest)}):
        with subtests.test(str(wrong)[:40]):
            assert_left_open(acme, asked, held.send(**wrong))
    assert held.send_answer().status_code == 200
    assert verification(acme, asked)["isValid"]


def sealed_by(key=None, **changes):
    """How a wallet encrypts: with other members of the header, or to another key."""

    def seal(answer, jwk):
        header = {"alg": "ECDH-ES", "enc": "A128GCM", "kid": jwk["kid"]} | changes
        names = [header[name] for name in ("alg", "enc", "zip") if name in header]
        own = ECKey.import_key({name: jwk[name] for name in ("kty", "crv", "x", "y")})
        to = key or (OctKey.import_key(bytes(16)) if header["alg"] == "dir" else own)
        return jwe.encrypt_compact(header, json.dumps(answer), to, algorithms=names)

    return seal


OTHER_ENVELOPES = {
    "zip": sealed_by(zip="DEF"),
    "dir": sealed_by(alg="dir"),
    "other enc": sealed_by(enc="A128CBC-HS256"),
    "key wrap": sealed_by(alg="ECDH-ES+A128KW"),
    "kid": sealed_by(kid="other"),
    "no kid": sealed_by(kid=""),
    "key": sealed_by(ECKey.generate_key("P-256")),
}


def test_another_envelope_leaves_the_request_open(acme, ask, held, subtests):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    [jwk] = held.request_object["client_metadata"]["jwks"]["keys"]
    answer = {"vp_token": held.vp_token(), "state": held.request_object["state"]}
    for name, seal in OTHER_ENVELOPES.items():
        with subtests.test(name):
            assert_left_open(acme, asked, held.send(response=seal(answer, jwk)))
    assert held.send(response=sealed_by()(answer, jwk)).status_code == 200
    assert verification(acme, asked)["isValid"]


def test_a_query_that_is_answered_twice_leaves_the_request_open(acme, ask, held):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    [jwk] = held.request_object["client_metadata"]["jwks"]["keys"]
    state = held.request_object["state"]
    twice = f'{{"vp_token": {{"q0": ["x"], "q0": ["y"]}}, "state": "{state}"}}'
    envelope = encryption.encrypt(twice.encode(), jwk, "A128GCM", jwk["kid"])
    assert held.send(response=envelope).status_code == 400
    assert verification(acme, asked)["state"] == "Requested"


def test_another_state_leaves_the_request_open(acme, ask, held, subtests):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    for state in ("other", None, 5, ""):
        with subtests.test(str(state)):
            assert_left_open(acme, asked, held.send_answer(state=state))
    without = held.encrypt({"vp_token": held.vp_token()})
    assert_left_open(acme, asked, held.send(response=without))
    assert held.send_answer().status_code == 200


def test_the_answer_to_another_request_leaves_it_open(acme, ask, held):
    first, second = ask(), ask()
    held.read_request(first["walletLinks"]["openid4vp"])
    of_first = {"vp_token": held.vp_token(), "state": held.request_object["state"]}
    envelope = held.encrypt(of_first)
    held.read_request(second["walletLinks"]["openid4vp"])
    assert held.send(response=envelope).status_code == 400
    # Encrypted anew, it has the wrong state.
    assert held.send(response=held.encrypt(of_first)).status_code == 400
    # With the right one, its presentation is bound to the nonce of the first.
    stolen = of_first | {"state": held.request_object["state"]}
    assert held.send(response=held.encrypt(stolen)).status_code == 200
    assert verification(acme, first)["state"] == "Requested"
    assert codes(verification(acme, second)) == {"holder_binding"}


def test_a_second_answer_changes_no_verdict(acme, ask, held):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    answer = {"vp_token": held.vp_token(), "state": held.request_object["state"]}
    assert held.send(response=held.encrypt(answer)).status_code == 200
    before = verification(acme, asked)
    assert before["isValid"]
    # The wallet has not heard that it came, and sends the same once more.
    assert held.send(response=held.encrypt(answer)).status_code == 200
    for second in (answer | {"vp_token": {}}, answer | {"error": "access_denied"}):
        assert held.send(response=held.encrypt(second)).status_code == 400
    assert verification(acme, asked) == before
    link = asked["walletLinks"]["openid4vp"]
    path = held.query["request_uri"]
    assert held.read(path).status_code == 410 and link


def test_a_wallet_that_declines_ends_it(acme, ask, held):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    refusal = {"error": "access_denied", "state": held.request_object["state"]}
    assert held.send(response=held.encrypt(refusal)).status_code == 200
    seen = verification(acme, asked)
    assert (seen["state"], seen["problem"]) == ("Rejected", "abandoned")
    assert held.send_answer().status_code == 400


@pytest.mark.parametrize(("vp_token", "code"), [
    (None, "malformed"), ({}, "unanswered"), ({"other": ["x"]}, "unrequested"),
    ({"q0": ["x"], "q1": ["x"]}, "credential_malformed"), ({"q0": "x"}, "malformed"),
    ({"q0": [], "q1": []}, "malformed"), ({"q0": ["x", "x"]}, "malformed"),
])  # fmt: skip
def test_an_answer_that_is_wrong_inside_is_not_valid(acme, ask, held, vp_token, code):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    assert held.send_answer(vp_token=vp_token).status_code == 200
    assert codes(verification(acme, asked)) == {code}


def test_what_is_shown_too_little_is_not_valid(acme, ask, held):
    asked = ask()
    request = held.read_request(asked["walletLinks"]["openid4vp"])
    queries = request["dcql_query"]["credentials"]
    held.send_answer(vp_token={one["id"]: [held.present([])] for one in queries})
    assert codes(verification(acme, asked)) == {"attribute_not_shown", "not_proven"}


def test_what_was_not_asked_for_is_not_kept(acme, ask, held):
    asked = ask()
    request = held.read_request(asked["walletLinks"]["openid4vp"])
    everything = held.present(["Full name", "born", "year", "paid", "age_over_18"])
    queries = request["dcql_query"]["credentials"]
    held.send_answer(vp_token={one["id"]: [everything] for one in queries})
    seen = verification(acme, asked)
    assert seen["isValid"] and "19900131" not in str(seen["proof"])
    assert "1990-01-31" not in str(seen["proof"])


def test_a_revoked_card_is_not_valid(acme, faber, ask, offers, phone):
    made = offers()
    phone.take(made["link"])
    before = ask()
    phone.answer(before["walletLinks"]["openid4vp"])
    assert verification(acme, before)["isValid"]
    faber.delete(f"/credentials/{made['credentialId']}")
    after = ask()
    phone.answer(after["walletLinks"]["openid4vp"])
    assert codes(verification(acme, after)) == {"revoked"}
    assert verification(acme, after)["causes"][0]["code"] == "card_revoked"
    unasked = ask(revocationRequirement=None)
    phone.answer(unasked["walletLinks"]["openid4vp"])
    assert verification(acme, unasked)["isValid"]


@pytest.mark.parametrize("issuer", ["faber", "own", "none"])
def test_an_organization_that_names_the_type_of_another_is_refused(
    acme, ask, held, issuer
):
    """Its certificate is of the same authority: only the name in it differs."""
    key = SigningKey.of(acme.tenant, SigningKey.Purpose.CREDENTIALS)
    real = sd_jwt.read(held.credential).claims
    plain = {name: real[name] for name in ("iss", "vct", "iat", "exp", "cnf")}
    if issuer == "own":
        plain["iss"] = issuer_url(acme.tenant.pk)
    elif issuer == "none":
        del plain["iss"]
    shown = {name: real[name] for name in real if name not in (*plain, "iss", "status")}
    held.credential = sd_jwt.issue(plain, shown, key.unseal_secret(), key.x5c)
    asked = ask()
    held.answer(asked["walletLinks"]["openid4vp"])
    found = codes(verification(acme, asked))
    assert found == {"restriction" if issuer == "own" else "untrusted_certificate"}


def test_a_link_that_has_ended_takes_no_answer(acme, ask, held):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    acme.delete(f"/verifications/{asked['verificationId']}")
    assert held.send_answer().status_code == 404
    assert held.read(held.query["request_uri"]).status_code == 404


def test_eight_answers_at_once_make_one_verdict(acme, ask, held):
    asked = ask()
    held.read_request(asked["walletLinks"]["openid4vp"])
    envelopes = [
        held.encrypt(
            {"vp_token": held.vp_token(), "state": held.request_object["state"]}
        )
        for _ in range(8)
    ]
    got = at_once(*[lambda one=one: held.send(response=one) for one in envelopes])
    statuses = sorted(one.status_code for one in got)
    assert statuses == [200] + [400] * 7
    events = Event.objects.filter(type=Type.VERIFICATION)
    assert events.count() == 1 and verification(acme, asked)["isValid"]
