"""The checklist for SD-JWT VCs: each forgery fails by the rule that is meant for it."""

import time

import pytest

from core.errors import PeerError, Unavailable
from tests.support.presentations import attribute, policy_of, predicate, required
from tests.support.sd_jwt import AUDIENCE, NONCE, VCT, Authority, Issuer, disclosure
from tests.wallets.jose.test_sd_jwt import FABER, FORGED
from verifications.openid4vp import queries, sd_jwt_rules
from verifications.openid4vp.queries import DerivedClaim, Source
from verifications.openid4vp.sd_jwt_rules import Trust
from verifications.proofs import proof_policy
from wallets.jose import certificates, signing

OURS = {"credentialDefinitionId": "d"}
SOURCE = Source(
    "Degree", VCT, issuer=FABER.uri, claims={"name": "name", "born": "born"},
    kinds={"born": "date"}, derived=(DerivedClaim("adult", "born", "<=", 20081128),),
)  # fmt: skip
NAME = disclosure("name", "Alice")
BORN = disclosure("born", "1990-01-31")
ADULT = disclosure("adult", True)
ASKED = (
    attribute("name", OURS | required("born", "19900131")),
    attribute("born", OURS | required("born", "19900131")),
    predicate("born", "<=", 20081128, OURS, policyName="adult"),
)
SHOWN = (NAME, BORN, ADULT)
CODES = {
    "bad_signature": "signature", "bad_token": "credential_malformed",
    "not_bound": "credential_malformed", "bad_binding": "holder_binding",
    "not_valid_yet": "not_valid_yet",
}  # fmt: skip


def trust(status=None, of=FABER, **keys):
    def status_of(listed, query):
        if isinstance(status, Exception):
            raise status
        return status

    return Trust([of.authority.certificate], keys, status_of)


def judge(vp_token, *items, source=SOURCE, trusted=None, **more):
    policy = proof_policy.normalise(policy_of(*(items or ASKED), **more))
    found = queries.compile_queries(policy, lambda restriction: [source])
    if not isinstance(vp_token, dict):
        vp_token = {one.id: [vp_token] for one in found}
    given = AUDIENCE, NONCE, time.time(), trusted or trust()
    return sd_jwt_rules.judge_answer(policy, found, vp_token, *given)


def failed(outcome):
    assert not outcome.is_valid
    return {check.code for check in outcome.checks if check.status == "fail"}


def show(shown=SHOWN, of=FABER, **changes):
    return of.present(shown=shown, **changes)


def test_an_honest_answer_is_valid_and_shows_what_was_asked():
    outcome = judge(show((*SHOWN, disclosure("iban", "secret"))))
    assert outcome.is_valid
    shown = {
        "revealed": True, "selfAttested": False, "conditional": False,
        "format": "dc+sd-jwt",
    }  # fmt: skip
    hidden = shown | {"revealed": False, "conditional": True}
    assert outcome.proof == {
        "name": {"name": "name", "value": "Alice"} | shown,
        "born": {"name": "born", "value": "19900131"} | shown,
        "adult": {"name": "born", "value": "true"} | hidden,
    }


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_presentation_fails(name):
    text, code, _ = FORGED[name]
    degree = Source("Degree", VCT, issuer=FABER.uri, claims={"degree": "degree"})
    outcome = judge({"q0": [text]}, attribute("degree", OURS), source=degree)
    expected = {CODES.get(code, code)} if isinstance(text, str) else {"malformed"}
    assert failed(outcome) == expected


@pytest.mark.parametrize(("changes", "code"), [
    ({"claims": {"vct": f"{VCT}2"}}, "restriction"),
    ({"claims": {"iss": "https://other.example"}}, "restriction"),
    ({"claims": {"exp": 1}}, "expired"),
    ({"claims": {"nbf": 4_000_000_000}}, "not_valid_yet"),
    ({"secret": signing.generate_secret()}, "signature"),
    ({"binding": {"nonce": "other"}}, "holder_binding"),
    ({"binding": {"aud": "other"}}, "holder_binding"),
    ({"holder": signing.generate_secret()}, "holder_binding"),
    ({"typ": "JWT"}, "credential_malformed"),
    ({"x5c": ["AAAA"]}, "untrusted_certificate"),
    ({"shown": [NAME, ADULT]}, "attribute_not_shown"),
    ({"shown": [BORN, ADULT]}, "attribute_not_shown"),
    ({"shown": [NAME, BORN]}, "not_proven"),
    ({"shown": [NAME, BORN, disclosure("adult", "true")]}, "not_proven"),
    ({"shown": [NAME, BORN, disclosure("adult", 1)]}, "not_proven"),
    ({"shown": [NAME, BORN, disclosure("adult", False)]}, "not_proven"),
    ({"shown": [NAME, disclosure("born", "1990-02-01"), ADULT]}, "value_restriction"),
    ({"shown": [NAME, disclosure("born", {}), ADULT]}, "attribute_not_shown"),
])  # fmt: skip
def test_each_fault_has_its_code(changes, code):
    assert code in failed(judge(show(**changes)))


def test_an_organization_that_names_the_type_of_another_is_refused():
    """Both have certificates of one authority, and only the name separates them."""
    mallory = Issuer("https://agency.example/openid/mallory")
    mallory.authority = FABER.authority
    mallory.x5c = FABER.authority.certify(mallory.secret, mallory.uri)
    for claims in ({}, {"iss": FABER.uri}, {"iss": None}):
        forged = show(of=mallory, claims=claims)
        assert failed(judge(forged)) <= {
            "restriction", "untrusted_certificate", "credential_malformed",
        }  # fmt: skip
    without = show(of=mallory, without=["iss"])
    assert failed(judge(without)) == {"untrusted_certificate"}
    prefix = Issuer(f"{FABER.uri}2")
    prefix.x5c = FABER.authority.certify(prefix.secret, prefix.uri)
    forged = show(of=prefix, claims={"iss": FABER.uri})
    assert failed(judge(forged)) == {"untrusted_certificate"}


def test_the_key_of_an_organization_counts_with_certificates_of_any_authority():
    uploaded = Authority().certify(FABER.secret)
    assert failed(judge(show(x5c=uploaded))) == {"untrusted_certificate"}
    key = signing.thumbprint_of(signing.public_jwk_of(FABER.secret))
    known = trust(**{FABER.uri: key})
    assert judge(show(x5c=uploaded), trusted=known).is_valid
    ended = Authority().certify(FABER.secret, begins=-9, ends=-1)
    assert failed(judge(show(x5c=ended), trusted=known)) == {"untrusted_certificate"}


def test_another_issuer_is_trusted_by_its_anchor_and_named_in_its_certificate():
    anchors = certificates.encode_chain([FABER.authority.der])
    state = Source("pid", VCT, anchors=tuple(anchors))
    item = attribute("name", {"vct": VCT})
    nothing = trust(of=Issuer())
    assert judge(show(), item, source=state, trusted=nothing).is_valid
    assert judge(show(without=["iss"]), item, source=state, trusted=nothing).is_valid
    other = show(claims={"iss": f"{FABER.uri}/2"})
    assert failed(judge(other, item, source=state)) == {"untrusted_certificate"}
    stranger = Issuer()
    forged = show(of=stranger)
    assert failed(judge(forged, item, source=state)) == {"untrusted_certificate"}


@pytest.mark.parametrize(
    "vp_token",
    [None, [], "x", {"q0": "x"}, {"q0": []}, {"q0": [5]}, {"q0": [show(), show()]}],
)
def test_an_answer_of_another_shape_is_malformed(vp_token):
    policy = proof_policy.normalise(policy_of(*ASKED))
    found = queries.compile_queries(policy, lambda restriction: [SOURCE])
    outcome = sd_jwt_rules.judge_answer(
        policy, found, vp_token, AUDIENCE, NONCE, time.time(), trust()
    )
    assert failed(outcome) == {"malformed"} and set(outcome.proof) == {
        "name", "born", "adult",
    }  # fmt: skip


def test_queries_that_were_not_asked_or_not_answered_fail():
    assert failed(judge({"q9": [show()]})) == {"unrequested"}
    assert failed(judge({})) == {"unanswered"}


STATUS = {"status": {"status_list": {"idx": 1, "uri": "https://x/1"}}}
NOW = {"revocationRequirement": {"validNow": True}}


@pytest.mark.parametrize(("status", "code"), [
    (0, None), (1, "revoked"), (2, "revoked"), (Unavailable("x", ""), "status_unavailable"),
    (PeerError("bad_status_list", ""), "status_unavailable"),
])  # fmt: skip
def test_the_status_counts_where_the_policy_asks(status, code):
    text = show(claims=STATUS)
    outcome = judge(text, trusted=trust(status), **NOW)
    assert outcome.is_valid if code is None else failed(outcome) == {code}
    assert judge(text, trusted=trust(status)).is_valid
    item = attribute(
        "name", OURS, revocationRequirement={"validAt": "2026-01-01T00:00:00Z"}
    )
    outcome = judge(text, item, trusted=trust(status))
    assert outcome.is_valid if code is None else failed(outcome) == {code}


def test_what_has_no_status_cannot_be_revoked():
    assert judge(show(), trusted=trust(1), **NOW).is_valid
    for status in ("x", {}, {"status_list": "x"}, {"identifier_list": {}}):
        text = show(claims={"status": status})
        assert failed(judge(text, trusted=trust(0), **NOW)) == {"status_unavailable"}
