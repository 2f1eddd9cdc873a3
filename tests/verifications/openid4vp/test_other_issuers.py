"""Acme asks for a card of a state whose authority it trusts, and Alice shows it."""

import base64
import time

import pytest

from tests.support.errors import assert_error, error_of
from tests.support.openid_wallet import OpenIdWallet
from tests.support.policies import attribute, policy, predicate
from tests.support.sd_jwt import STRANGE, Authority, Issuer, in_days
from wallets.jose import certificates, sd_jwt

pytestmark = pytest.mark.django_db(transaction=True)
VCT = "urn:eu:pid"
STATE = Issuer("https://state.example")


def issue(of=STATE, **changes):
    """A phone with a card of the state."""
    phone = OpenIdWallet()
    claims = {
        "iss": of.uri, "vct": VCT, "exp": int(time.time()) + 9999,
        "cnf": {"jwk": phone.jwk},
    } | changes  # fmt: skip
    shown = {"name": "Alice", "year": 7, "over_18": True}
    phone.credential = sd_jwt.issue(claims, shown, of.secret, of.x5c)
    return phone


@pytest.fixture
def anchor(acme):
    return trust(acme)


def trust(organization, authority=STATE.authority):
    body = {"name": "State", "certificate": authority.pem}
    return organization.post("/openid/trustAnchors", body)["trustAnchorId"]


def policy_for(anchor_id):
    only = {"vct": VCT, "trustAnchorId": anchor_id}
    year = {"value": {"attributeName": "year", "attributeValue": "7"}}
    return policy(
        attribute("name", policyName="who", restrictions=[only | year]),
        predicates=[
            predicate(
                "age", ">=", 18, policyName="adult",
                restrictions=[only | {"provenBy": ["over_18"]}],
            )
        ],
        revocationRequirement={"validNow": True},
    )  # fmt: skip


def ask_state(acme, anchor_id):
    body = policy_for(anchor_id) | {"protocol": "openid4vp"}
    return acme.post("/verifications/policy", body)


def answer(acme, anchor_id, phone):
    asked = ask_state(acme, anchor_id)
    assert phone.answer(asked["walletLinks"]["openid4vp"]).status_code == 200
    return acme.get(f"/verifications/{asked['verificationId']}")


def codes(seen):
    assert (seen["state"], seen["isValid"]) == ("Accepted", False)
    return {one["code"] for one in seen["checks"] if one["status"] == "fail"}


def test_the_card_of_an_issuer_below_the_anchor_is_valid(acme, anchor):
    seen = answer(acme, anchor, issue())
    assert seen["isValid"], seen["checks"]
    assert seen["proof"]["who"]["attributes"] == {"name": "Alice"}
    assert seen["proof"]["adult"]["value"] == "true"


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ({"of": Issuer("https://state.example")}, "untrusted_certificate"),
        ({"iss": "https://other.example"}, "untrusted_certificate"),
        ({"iss": "https://["}, "untrusted_certificate"),
        ({"vct": "urn:eu:other"}, "restriction"),
    ],
    ids=["root of the same name", "other issuer", "no address", "other type"],
)
def test_another_card_is_not_valid(acme, anchor, made, code):
    assert codes(answer(acme, anchor, issue(**made))) == {code}


def test_who_signs_as_what_they_are_not_is_refused(acme, anchor):
    own = Issuer(STATE.uri)
    own.x5c = STATE.authority.certify(own.secret, STATE.uri, begins=-9, ends=-1)
    assert codes(answer(acme, anchor, issue(own))) == {"untrusted_certificate"}
    own.x5c = STATE.x5c  # with another key
    assert codes(answer(acme, anchor, issue(own))) == {"signature"}
    # A leaf that signs another.
    [leaf] = certificates.read_chain(STATE.x5c)
    below = certificates.make_leaf(
        "Mallory", STATE.uri, own.secret, certificates.der_of(leaf), STATE.secret,
        in_days(-1), in_days(1),
    )  # fmt: skip
    own.x5c = certificates.encode_chain([below]) + STATE.x5c
    assert codes(answer(acme, anchor, issue(own))) == {"untrusted_certificate"}
    # The authority that signs a card itself.
    own.secret = STATE.authority.secret
    own.x5c = certificates.encode_chain([STATE.authority.der])
    assert codes(answer(acme, anchor, issue(own))) == {"untrusted_certificate"}


@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_certificate_is_not_trusted(acme, anchor, strange):
    der = strange(base64.b64decode(STATE.x5c[0]))
    own = Issuer(STATE.uri)
    own.secret, own.x5c = STATE.secret, certificates.encode_chain([der])
    assert codes(answer(acme, anchor, issue(own))) == {"untrusted_certificate"}


def test_the_anchor_of_another_organization_is_none(faber, acme, anchor):
    for anchor_id in (trust(faber), "x", "0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e5f"):
        found = error_of(ask_state, acme, anchor_id)
        assert_error(found, 409, "not_provable")
        assert "trust anchor of yours" in found.body["message"]


def test_a_request_keeps_the_anchor_that_it_was_made_with(acme, anchor):
    asked, phone = ask_state(acme, anchor), issue()
    acme.delete(f"/openid/trustAnchors/{anchor}")
    assert_error(error_of(ask_state, acme, anchor), 409, "not_provable")
    phone.answer(asked["walletLinks"]["openid4vp"])
    assert acme.get(f"/verifications/{asked['verificationId']}")["isValid"]


def test_didcomm_does_not_ask_for_it(acme, anchor):
    found = error_of(acme.post, "/verifications/policy", policy_for(anchor))
    assert_error(found, 409, "not_provable")


def test_what_was_issued_stays_valid_when_certificates_are_uploaded(
    faber, acme, offers, ask, phone
):
    authority = Authority("Bridge")
    phone.take(offers()["link"])
    before = ask()
    text = authority.certify_key(faber.tenant)
    faber.put("/openid/certificates", {"certificates": text})
    later = OpenIdWallet()
    held = later.take(offers()["link"])
    [leaf] = certificates.read_chain(held.token.header["x5c"])
    assert leaf.issuer == authority.certificate.subject
    after = ask()
    for wallet, asked in ((phone, before), (phone, after), (later, ask())):
        wallet.answer(asked["walletLinks"]["openid4vp"])
        seen = acme.get(f"/verifications/{asked['verificationId']}")
        assert seen["isValid"], seen["checks"]
