"""What an issuer refuses: with the protocol's code, and never with a credential."""

import json
import time
from datetime import timedelta

import pytest
from django.urls import get_resolver
from django.utils import timezone
from joserfc import jws
from joserfc.jwk import ECKey, OctKey

from connections import link_expiry
from connections.models import Connection
from credentials.models import Credential, Grant, SpentNonce
from credentials.openid4vci import proofs
from tenants.models import Tenant
from tests.support.openid_wallet import CODE_GRANT, OpenIdWallet
from tests.support.policies import attribute, policy
from tests.support.races import at_once
from wallets.jose import signing
from wallets.models import issuer_url

OTHER = signing.generate_secret()


def assert_refused(response, error, status=400):
    assert (response.status_code, response.json()["error"]) == (status, error)
    assert b"~" not in response.content
    assert response["Cache-Control"] == "no-store"


@pytest.fixture
def opened(offers, phone):
    """The phone has read an offer."""
    phone.open(offers()["link"])
    return phone


@pytest.fixture
def allowed(opened):
    """The phone has a token."""
    opened.take_token()
    return opened


# Tokens


def test_a_code_works_once(opened):
    opened.take_token()
    assert_refused(opened.ask_token(), "invalid_grant")
    assert opened.keep(opened.ask())
    assert_refused(opened.ask_token(), "invalid_grant")


def test_of_eight_wallets_at_once_one_gets_a_token(opened):
    answers = at_once(*[lambda: opened.ask_token()] * 8)
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200] + [400] * 7
    assert Grant.objects.get().redeemed_at


def test_a_code_is_of_one_organization(opened, acme):
    opened.issuer = issuer_url(acme.tenant.pk)
    assert_refused(opened.ask_token(), "invalid_grant")


WRONG_FORMS = [
    ({"pre-authorized_code": "unknown"}, "invalid_grant"),
    ({"pre-authorized_code": ""}, "invalid_request"),
    ({"pre-authorized_code": "x" * 300}, "invalid_request"),
    ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
    ({"tx_code": "123456"}, "invalid_request"),
]


def test_other_forms_are_refused(opened, subtests):
    for changes, error in WRONG_FORMS:
        with subtests.test(str(changes)):
            assert_refused(opened.ask_token(**changes), error)
    twice = f"grant_type={CODE_GRANT}&pre-authorized_code=a&pre-authorized_code=b"
    path = opened.issuer.split("/", 3)[3]
    for body, kind in (
        (twice, "application/x-www-form-urlencoded"),
        ("{}", "application/json"),
        (
            "&".join(f"a{n}=1" for n in range(20_000)),
            "application/x-www-form-urlencoded",
        ),
    ):
        with subtests.test(kind):
            response = opened.client.post(f"/{path}/token", body, content_type=kind)
            assert_refused(response, "invalid_request")
    assert opened.take_token()


def test_the_transaction_code_is_guessed_five_times_at_most(faber, offers, phone):
    made = offers(transactionCode=True)
    right = made["transactionCode"]
    wrong = f"{(int(right) + 1) % 10**6:06}"
    phone.open(made["link"])
    assert phone.offer["grants"][CODE_GRANT]["tx_code"]["length"] == 6
    assert_refused(phone.ask_token(), "invalid_request")
    for _ in range(5):
        assert_refused(phone.ask_token(wrong), "invalid_grant")
    assert_refused(phone.ask_token(right), "invalid_grant")
    ended = faber.get(f"/credentials/{made['credentialId']}")
    assert (ended["state"], ended["problem"]) == (
        "Rejected",
        "transaction_code_guessed",
    )
    assert ended["problemMessage"]


def test_a_declined_offer_gives_no_token(faber, offers, opened):
    credential = Credential.objects.get()
    credential.decline()
    assert_refused(opened.ask_token(), "invalid_grant")


def test_an_expired_offer_gives_none_and_ends(faber, offers, phone):
    made = offers()
    phone.open(made["link"])
    past = timezone.now() - timedelta(seconds=1)
    Connection.objects.update(expires_at=past, expiry_due_at=past)
    assert_refused(phone.ask_token(), "invalid_grant")
    link_expiry.end_expired_links()
    ended = faber.get(f"/credentials/{made['credentialId']}")
    assert (ended["state"], ended["problem"]) == ("Rejected", "link_expired")


def test_an_unused_token_ends_the_offer(faber, offers, phone):
    made = offers()
    phone.open(made["link"])
    phone.take_token()
    late = timezone.now() - timedelta(seconds=301)
    Connection.objects.update(expiry_due_at=timezone.now())
    Grant.objects.update(redeemed_at=late, token_expires_at=late)
    assert_refused(phone.ask(), "invalid_token", 401)
    link_expiry.end_expired_links()
    ended = faber.get(f"/credentials/{made['credentialId']}")
    assert (ended["state"], ended["problem"]) == ("Rejected", "token_unused")


def test_a_token_that_was_used_ends_nothing(faber, offers, phone):
    made = offers(automaticIssuance=False)
    phone.open(made["link"])
    phone.take_token()
    assert phone.ask().status_code == 202
    due = Connection.objects.get().expiry_due_at
    assert due > timezone.now() + timedelta(days=6)
    link_expiry.end_expired_links()
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Requested"


# Proofs


def proof(phone, header=None, claims=None, secret=None, typ=proofs.PROOF_TYP):
    said = {"aud": phone.issuer, "iat": int(time.time()), "nonce": phone.nonce()}
    said |= claims or {}
    said = {name: one for name, one in said.items() if one is not None}
    header = {"jwk": phone.jwk} if header is None else header
    return signing.sign_token(said, secret or phone.secret, typ, **header)


def signed_with(alg, phone, key, jwk=None, **header):
    """A proof whose signature is right, by another algorithm or with another header."""
    said = {"aud": phone.issuer, "iat": int(time.time()), "nonce": phone.nonce()}
    header = {"alg": alg, "jwk": jwk or phone.jwk} | header
    return jws.serialize_compact(header, json.dumps(said), key, algorithms=[alg])


def without_algorithm(phone):
    header, payload, _ = proof(phone, {"jwk": phone.jwk, "alg": "none"}).split(".")
    return f"{header}.{payload}."


def of_public_key(phone):
    """The public key as the secret of an HMAC, which a careless library accepts."""
    key = OctKey.import_key(json.dumps(phone.jwk))
    return signed_with("HS256", phone, key, typ=proofs.PROOF_TYP)


def of_p521(phone):
    key = ECKey.generate_key("P-521")
    jwk = key.as_dict(private=False)
    return signed_with("ES512", phone, key, jwk, typ=proofs.PROOF_TYP)


def without_typ(phone):
    private = phone.jwk | {"d": signing.encode_base64url(phone.secret)}
    return signed_with("ES256", phone, ECKey.import_key(private))


WRONG_PROOFS = {
    "alg none": without_algorithm,
    "HS256": of_public_key,
    "P-521": of_p521,
    "no typ": without_typ,
    "typ JWT": lambda phone: proof(phone, typ="JWT"),
    "other aud": lambda phone: proof(phone, claims={"aud": "https://other.example"}),
    "aud is a list": lambda phone: proof(phone, claims={"aud": [phone.issuer]}),
    "no aud": lambda phone: proof(phone, claims={"aud": None}),
    "no nonce": lambda phone: proof(phone, claims={"nonce": None}),
    "iat is a text": lambda phone: proof(phone, claims={"iat": "1"}),
    "iat is long ago": lambda phone: proof(phone, claims={"iat": 1}),
    "no iat": lambda phone: proof(phone, claims={"iat": None}),
    "jwk and kid": lambda phone: proof(phone, {"jwk": phone.jwk, "kid": "did:key:z"}),
    "jwk and x5c": lambda phone: proof(phone, {"jwk": phone.jwk, "x5c": []}),
    "kid and x5c": lambda phone: proof(phone, {"kid": "did:key:z", "x5c": []}),
    "kid alone": lambda phone: proof(phone, {"kid": "did:key:z"}),
    "no key": lambda phone: proof(phone, {}),
    "private key": lambda phone: proof(phone, {"jwk": phone.jwk | {"d": "AA"}}),
    "off the curve": lambda phone: proof(
        phone, {"jwk": phone.jwk | {"x": phone.jwk["y"]}}
    ),
    "other signature": lambda phone: proof(phone, secret=signing.generate_secret()),
    "not a token": lambda phone: "a.b",
    "a number": lambda phone: 5,
    "too long": lambda phone: proof(phone, claims={"pad": "x" * 20_000}),
}


def test_proofs_that_prove_nothing(allowed, subtests):
    for name, make in WRONG_PROOFS.items():
        with subtests.test(name):
            body = allowed.request(make(allowed))
            assert_refused(allowed.ask(body), "invalid_proof")
    assert allowed.keep(allowed.ask())


def test_nonces_are_of_here_fresh_and_used_once(allowed, acme, subtests, monkeypatch):
    used = allowed.prove()
    nonce = signing.read_token(used, proofs.PROOF_TYP).payload["nonce"]
    elsewhere = proofs.make_nonce(acme.tenant)
    with monkeypatch.context() as patched:
        long_ago = time.time() - proofs.NONCE_SECONDS - 1
        patched.setattr(proofs.time, "time", lambda: long_ago)
        old = proofs.make_nonce(Credential.objects.get().tenant)
    wrong = {
        "unknown": "abc",
        "of another organization": elsewhere,
        "old": old,
        "changed": nonce[:-2] + "AA",
        "no text": 5,
    }
    for name, given in wrong.items():
        with subtests.test(name):
            body = allowed.request(proof(allowed, claims={"nonce": given}))
            assert_refused(allowed.ask(body), "invalid_nonce")
    assert allowed.keep(allowed.ask(allowed.request(used)))


def test_a_nonce_serves_one_offer(offers):
    first, second = OpenIdWallet(), OpenIdWallet()
    for one in (first, second):
        one.open(offers()["link"])
        one.take_token()
    shared = first.nonce()
    assert first.keep(first.ask(first.request(first.prove(nonce=shared))))
    body = second.request(second.prove(nonce=shared))
    assert_refused(second.ask(body), "invalid_nonce")


# Requests


def test_a_request_needs_its_own_token(offers, allowed, acme):
    body = allowed.request()
    for header in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eA=="}):
        response = allowed.post("credential", body, **header)
        assert_refused(response, "invalid_token", 401)
        assert response["WWW-Authenticate"].startswith("Bearer")
    url = f"credential?access_token={allowed.token}"
    assert_refused(allowed.post(url, body), "invalid_request")
    own, allowed.issuer = allowed.issuer, issuer_url(acme.tenant.pk)
    assert_refused(allowed.ask(body), "invalid_token", 401)
    allowed.issuer = own
    assert allowed.keep(allowed.ask(body))


def test_a_bound_token_needs_its_proof(opened, subtests):
    opened.dpop_secret = signing.generate_secret()
    opened.take_token()
    body = opened.request()
    bound = f"DPoP {opened.token}"
    bearer = opened.post("credential", body, Authorization=f"Bearer {opened.token}")
    assert_refused(bearer, "invalid_token", 401)
    bare = opened.post("credential", body, Authorization=bound)
    assert_refused(bare, "invalid_token", 401)
    for changes in (
        {"htm": "GET"}, {"htu": f"{opened.issuer}/token"}, {"iat": 1}, {"ath": "x"},
        {"jti": 5}, {"iat": "now"},
    ):  # fmt: skip
        with subtests.test(str(changes)):
            wrong = opened.proof_of_token("credential", **changes)
            response = opened.post("credential", body, Authorization=bound, **wrong)
            assert_refused(response, "invalid_dpop_proof")
    own, opened.dpop_secret = opened.dpop_secret, signing.generate_secret()
    assert_refused(opened.ask(body), "invalid_token", 401)
    opened.dpop_secret = own
    again = opened.authorization("credential")
    assert opened.post("credential", body, **again).status_code == 200
    response = opened.post("credential", body, **again)
    assert_refused(response, "invalid_dpop_proof")


def test_who_has_no_code_leaves_nothing_behind(opened):
    """Anybody can make keys, and proofs of them."""
    opened.dpop_secret = signing.generate_secret()
    changes = {"pre-authorized_code": "unknown"}
    assert_refused(opened.ask_token(**changes), "invalid_grant")
    assert not SpentNonce.objects.exists()
    assert opened.take_token()["token_type"] == "DPoP"


def test_an_organization_that_is_deleted_meanwhile_issues_nothing(
    opened, faber, monkeypatch
):
    opened.take_token()
    body = opened.request()
    bind = proofs.spend_nonce

    def delete(proof):
        bind(proof)
        Tenant.objects.filter(pk=faber.tenant.pk).update(deleted_at=timezone.now())

    monkeypatch.setattr(proofs, "spend_nonce", delete)
    assert opened.ask(body).status_code == 404


def test_requests_that_name_something_else(allowed, subtests):
    def without(*names):
        body = allowed.request()
        return {name: body[name] for name in body if name not in names}

    of_another_key = proof(allowed, {"jwk": signing.public_jwk_of(OTHER)}, secret=OTHER)
    wrong = [
        ({"credential_identifier": "x"}, "invalid_credential_request"),
        ({"credential_configuration_id": "x"}, "unknown_credential_configuration"),
        ({"credential_configuration_id": ["x"]}, "unknown_credential_configuration"),
        ({"credential_response_encryption": {}}, "invalid_encryption_parameters"),
        ({"proofs": {"jwt": []}}, "invalid_proof"),
        ({"proofs": {"jwt": "x"}}, "invalid_proof"),
        ({"proofs": {"attestation": ["x"]}}, "invalid_proof"),
        ({"proofs": []}, "invalid_proof"),
        ({"proofs": {"jwt": [allowed.prove()] * 2}}, "invalid_proof"),
        ({"proofs": {"jwt": [allowed.prove(), allowed.prove()]}}, "invalid_proof"),
        ({"proofs": {"jwt": [allowed.prove(), of_another_key]}}, "invalid_proof"),
        ({"proofs": {"jwt": [[]]}}, "invalid_proof"),
    ]
    for members, error in wrong:
        with subtests.test(str(members)[:60]):
            assert_refused(allowed.ask(allowed.request() | members), error)
    no_name = without("credential_configuration_id")
    assert_refused(allowed.ask(no_name), "invalid_credential_request")
    assert_refused(
        allowed.ask(no_name | {"credential_identifier": "x"}),
        "unknown_credential_identifier",
    )
    assert_refused(allowed.ask(without("proofs")), "invalid_proof")
    for body in ("[" * 40 + "]" * 40, "[]", "{", '{"a": 1, "a": 2}', "x" * 70_000):
        with subtests.test(body[:20]):
            assert_refused(allowed.ask(body), "invalid_credential_request")
    assert allowed.keep(allowed.ask())


def test_a_declined_request_gets_nothing(faber, offers, phone):
    made = offers(automaticIssuance=False)
    phone.open(made["link"])
    phone.take_token()
    waiting = phone.ask().json()["transaction_id"]
    Credential.objects.get().decline()
    assert_refused(phone.ask_later(waiting), "credential_request_denied")
    assert_refused(phone.ask(), "credential_request_denied")


def test_transactions_and_notifications_of_others_are_unknown(offers, allowed):
    assert_refused(allowed.ask_later("x"), "invalid_transaction_id")
    assert_refused(
        allowed.ask_later(str(Grant.objects.get().pk)), "invalid_transaction_id"
    )
    allowed.keep(allowed.ask())
    body = {"notification_id": "x", "event": "credential_accepted"}
    response = allowed.post("notification", body, **allowed.authorization(""))
    assert_refused(response, "invalid_notification_id")
    body = {"notification_id": str(Grant.objects.get().pk), "event": "x"}
    response = allowed.post("notification", body, **allowed.authorization(""))
    assert_refused(response, "invalid_notification_request")


def test_two_requests_at_once_make_one_credential(allowed):
    bodies = [allowed.request(), allowed.request()]
    answers = at_once(*[lambda body=body: allowed.ask(body) for body in bodies])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert Credential.objects.get().sequence == 3


# Addresses


def test_unknown_addresses_are_not_there(faber, opened):
    other = "00000000-0000-7000-8000-000000000000"
    for path in ("offers/x", "types/" + other, "status/9"):
        assert opened.read(f"{opened.issuer}/{path}").status_code == 404
    assert opened.client.get(f"/openid/{other}/offers/x").status_code == 404
    assert opened.read(f"{opened.issuer}/token").status_code == 405


def routes_of_organizations():
    """All addresses below that of an organization."""

    def walk(patterns, prefix=""):
        for one in patterns:
            path = prefix + str(one.pattern)
            yield from walk(getattr(one, "url_patterns", []), path)
            yield path

    start = "openid/<uuid:tenantId>/"
    paths = [path for path in walk(get_resolver().url_patterns) if start in path]
    return {path.partition(start)[2] for path in paths} - {""}


def test_an_address_knows_what_is_of_its_organization_only(
    faber, acme, card, offers, phone, subtests
):
    """Each that leads to something: a new one must be added here."""
    made = offers(automaticIssuance=False)
    phone.open(made["link"])
    phone.take_token()
    waiting = phone.ask().json()["transaction_id"]
    faber.put(f"/credentials/{made['credentialId']}", {})
    told = {"notification_id": waiting, "event": "credential_accepted"}
    other, own = OpenIdWallet(), phone.issuer
    link = offers()
    other.open(link["link"])
    token = Connection.objects.get(credential=link["credentialId"]).token
    type_id = card["vct"].rpartition("/")[2]
    only = {"credentialDefinitionId": card["definitionId"]}
    name = policy(attribute("Full name", restrictions=[only]), protocol="openid4vp")
    asked = faber.post("/verifications/policy", name)
    verified = OpenIdWallet()
    verified.take(offers()["link"])
    verified.read_request(asked["walletLinks"]["openid4vp"])
    request = verified.request_object

    def at(url):
        return url.replace(own, phone.issuer)

    def answer():
        verified.request_object = request | {
            "response_uri": at(request["response_uri"])
        }
        return verified.send_answer()

    calls = {
        "offers/<str:token>": lambda: other.read(f"{other.issuer}/offers/{token}"),
        "token": other.ask_token,
        "credential": phone.ask,
        "deferred_credential": lambda: phone.ask_later(waiting),
        "notification": lambda: phone.post(
            "notification", told, **phone.authorization("")
        ),
        "types/<uuid:definitionId>": lambda: phone.read(
            f"{phone.issuer}/types/{type_id}"
        ),
        "status/<int:number>": lambda: phone.read(f"{phone.issuer}/status/1"),
        "requests/<str:token>": lambda: verified.read(
            at(verified.query["request_uri"])
        ),
        "responses/<str:token>": answer,
    }
    assert calls.keys() == routes_of_organizations() - {"nonce"}
    for issuer, accepted in ((issuer_url(acme.tenant.pk), False), (own, True)):
        phone.issuer = other.issuer = issuer
        for address, call in calls.items():
            with subtests.test(address, issuer=issuer):
                wanted = {200, 204} if accepted else {400, 401, 404}
                assert call().status_code in wanted


def test_a_used_link_shows_its_offer_no_more(offers, phone):
    link = offers()["link"]
    phone.take(link)
    address = f"{phone.issuer}/offers/{Connection.objects.get().token}"
    assert phone.read(address).status_code == 410


def test_who_asks_too_often_waits(opened):
    answers = [opened.ask_token(**{"grant_type": "x"}) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {400}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("credentials.api.openid4vci.OF_ADDRESS", 1)
        codes = [opened.ask_token().status_code for _ in range(3)]
    assert 429 in codes


@pytest.mark.parametrize(
    "limit, form",
    [("OF_UNKNOWN_LINKS", {"pre-authorized_code": "unknown"}), ("OF_LINK", {})],
)
def test_codes_are_tried_as_often_as_links(offers, phone, monkeypatch, limit, form):
    phone.open(offers(transactionCode=True)["link"])
    monkeypatch.setattr(f"credentials.api.openid4vci.{limit}", 2)
    codes = [phone.ask_token(**form).status_code for _ in range(4)]
    assert codes[:2] == [400, 400] and 429 in codes


def test_nonces_are_given_in_measure(opened, monkeypatch):
    monkeypatch.setattr("credentials.api.openid4vci.OF_NONCES", 2)
    answers = [opened.post("nonce") for _ in range(4)]
    assert [one.status_code for one in answers[:2]] == [200, 200]
    assert answers[-1].status_code == 429 and int(answers[-1]["Retry-After"]) > 0
