"""Credentials as SD-JWT VC: issued, presented, and every forgery refused."""

import time
from datetime import UTC, datetime

import pytest
from openvc.errors import OpenvcError
from openvc.proof.sd_jwt import SdJwtVcProofSuite
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from core.errors import PeerError
from tests.fixtures.openid4vc_vectors import VECTORS
from tests.support.errors import refusal
from tests.support.sd_jwt import (
    AUDIENCE,
    DEGREE,
    NAME,
    NONCE,
    URI,
    VCT,
    Authority,
    Issuer,
    disclosure,
    in_days,
)
from wallets.jose import certificates, sd_jwt, signing
from wallets.jose.signing import sha256_of

FABER = Issuer()
present = FABER.present
MALLORY = Issuer()
TWIN = signing.generate_secret()
SAMPLE = VECTORS["sd_jwt"]


def judge(text, now=None):
    """What a verifier does with a presentation, in this order."""
    now = now or time.time()
    credential = sd_jwt.read(text)
    chain = certificates.read_chain(credential.token.header.get("x5c"))
    moment = datetime.fromtimestamp(now, UTC)
    certificates.verify_chain(chain, [FABER.authority.certificate], moment)
    credential.verify(certificates.key_of(chain[0]))
    credential.check_times(now)
    credential.verify_binding(AUDIENCE, NONCE, now)
    return credential


def judged_by_another(text):
    """What openvc-core finds, which takes the issuer's key as given."""
    jwk = signing.public_jwk_of(FABER.secret)
    given = {"public_key_jwk": jwk, "audience": AUDIENCE, "nonce": NONCE}
    return SdJwtVcProofSuite().verify(text, require_key_binding=True, **given)


def nested(levels):
    value = "deep"
    for _ in range(levels):
        value = {"a": value}
    return value


def below(name, value, **plain):
    """A disclosure in which the digest of another lies."""
    return disclosure(name, {"_sd": [sha256_of(value)]} | plain)


def nesting(outer, inner=DEGREE):
    """A presentation whose token has the digest of the outer disclosure alone."""
    return present(shown=[outer, inner], digests=[sha256_of(outer)])


def self_signed():
    """The certificate of a key that certifies itself, in the name of Faber."""
    own = Authority()
    own.secret = FABER.secret
    own.der = certificates.make_authority("Faber", own.secret, in_days(-1), in_days(1))
    return own.certify(FABER.secret)


NOW = int(time.time())
VCT_SHOWN, CNF_SHOWN = disclosure("vct", VCT), disclosure("cnf", {"jwk": {}})
NAMED_SD = disclosure("_sd", [])
EXTRA = disclosure("admin", "true")
TAKEN = signing.public_jwk_of(MALLORY.holder)
EXPIRED = FABER.authority.certify(FABER.secret, begins=-9, ends=-1)
SAME_NAME = Authority().certify(FABER.secret)
# name: (the presentation, code of the refusal, whether openvc-core refuses it too).
FORGED = {
    "other signature": (present(secret=MALLORY.secret), "bad_signature", True),
    "no chain": (present(x5c=["AAAA"]), "untrusted_certificate", False),
    "chain of another": (present(x5c=MALLORY.x5c), "untrusted_certificate", False),
    "root of the same name": (present(x5c=SAME_NAME), "untrusted_certificate", False),
    "self-signed": (present(x5c=self_signed()), "untrusted_certificate", False),
    "certificate expired": (present(x5c=EXPIRED), "untrusted_certificate", False),
    "expired": (present({"exp": 1}), "expired", True),
    "not valid yet": (present({"nbf": NOW + 99_999}), "not_valid_yet", True),
    "exp a text": (present({"exp": "4000000000"}), "bad_token", True),
    "typ JWT": (present(typ="JWT"), "bad_token", True),
    "an access token": (present(typ="at+jwt"), "bad_token", True),
    "former typ": (present(typ="vc+sd-jwt"), "bad_token", True),
    "no vct": (present(without=["vct"]), "bad_token", True),
    "vct a list": (present({"vct": [VCT]}), "bad_token", True),
    "vct disclosed": (
        present(without=["vct"], shown=[VCT_SHOWN]), "bad_token", True,
    ),
    "no cnf": (present(without=["cnf"]), "not_bound", True),
    "cnf a text": (present({"cnf": "x"}), "not_bound", True),
    "cnf without jwk": (present({"cnf": {}}), "bad_binding", True),
    "cnf disclosed": (
        present(without=["cnf"], shown=[CNF_SHOWN]), "bad_token", True,
    ),
    "status disclosed": (
        present(shown=[disclosure("status", {})]), "bad_token", True,
    ),
    "iss disclosed": (
        present(without=["iss"], shown=[disclosure("iss", URI)]), "bad_token", True,
    ),
    "sha-1": (present({"_sd_alg": "sha-1"}), "bad_token", True),
    "sha-512": (present({"_sd_alg": "sha-512"}), "bad_token", True),
    "digests of another algorithm below": (
        present({"a": {"_sd_alg": "sha-256"}}), "bad_token", False,
    ),
    "disclosure without a digest": (
        present(shown=[DEGREE, EXTRA], digests=[sha256_of(DEGREE)]), "bad_token", True,
    ),
    "disclosure twice": (
        present(shown=[DEGREE, DEGREE], digests=[sha256_of(DEGREE)]), "bad_token", True,
    ),
    "digest twice": (
        present(shown=[DEGREE], digests=[sha256_of(DEGREE)] * 2), "bad_token", True,
    ),
    "hidden digest twice": (present(digests=["x" * 43] * 2), "bad_token", True),
    "digest twice, once below": (
        present({"a": {"_sd": [sha256_of(DEGREE)]}}), "bad_token", True,
    ),
    "digest no text": (present(digests=[5]), "bad_token", True),
    "digests no list": (present(digests="x"), "bad_token", True),
    "over a plain claim": (present({"degree": "Art"}), "bad_token", True),
    "named _sd": (present(shown=[NAMED_SD]), "bad_token", True),
    "named ...": (present(shown=[disclosure("...", "x")]), "bad_token", True),
    "nested in one that is not shown": (
        present(shown=[DEGREE], digests=[sha256_of(below("a", DEGREE))]),
        "bad_token", True,
    ),
    "nested, its digest twice": (
        present(shown=[below("a", DEGREE), DEGREE]), "bad_token", True,
    ),
    "nested over a plain claim": (
        nesting(below("a", DEGREE, degree="Art")), "bad_token", True,
    ),
    "nested, named _sd": (
        nesting(below("a", NAMED_SD), NAMED_SD), "bad_token", True,
    ),
    "without a name": (present(shown=[disclosure("degree")]), "bad_token", True),
    "with a name in an array": (
        present({"a": [{"...": sha256_of(DEGREE)}]}, shown=[DEGREE], digests=[]),
        "bad_token", True,
    ),
    "digest with others in an array": (
        present({"a": [{"...": "x", "b": 1}]}), "bad_token", True,
    ),
    "no base64url": (present(shown=["degree!"]), "bad_token", True),
    "no disclosure": (present(shown=["YQ"]), "bad_token", True),
    "too deep": (present({"a": nested(21)}), "bad_token", False),
    "too deep by a disclosure": (
        present({"a": nested(10)}, shown=[disclosure("b", nested(21))]),
        "bad_token", False,
    ),
    "501 disclosures": (
        present(shown=[disclosure(f"n{n}", n) for n in range(501)]), "bad_token", False,
    ),
    "too long": (present({"a": "x" * 400_000}), "bad_token", False),
    "no KB-JWT": (present(has_binding=False), "bad_binding", True),
    "KB-JWT of another typ": (present(binding_typ="JWT"), "bad_binding", True),
    "KB-JWT of another key": (present(holder=MALLORY.holder), "bad_binding", True),
    "KB-JWT of a key that is disclosed": (
        present(holder=MALLORY.holder, shown=[disclosure("cnf", {"jwk": TAKEN})]),
        "bad_token", True,
    ),
    "aud": (present(binding={"aud": "x509_hash:other"}), "bad_binding", True),
    "aud, a prefix": (present(binding={"aud": AUDIENCE[:-1]}), "bad_binding", True),
    "aud, longer": (present(binding={"aud": AUDIENCE + "x"}), "bad_binding", True),
    "aud, a list": (present(binding={"aud": [AUDIENCE]}), "bad_binding", False),
    "no aud": (present(binding_without=["aud"]), "bad_binding", True),
    "nonce": (present(binding={"nonce": "other"}), "bad_binding", True),
    "no nonce": (present(binding_without=["nonce"]), "bad_binding", True),
    "sd_hash": (present(binding={"sd_hash": "x" * 43}), "bad_binding", True),
    "no sd_hash": (present(binding_without=["sd_hash"]), "bad_binding", True),
    "iat long ago": (present(binding={"iat": NOW - 99_999}), "bad_binding", True),
    "iat to come": (present(binding={"iat": NOW + 99_999}), "bad_binding", True),
    "iat a text": (present(binding={"iat": str(NOW)}), "bad_binding", True),
    "iat true": (present(binding={"iat": True}), "bad_binding", True),
    "no iat": (present(binding_without=["iat"]), "bad_binding", True),
    "no tilde": (present().split("~")[0], "bad_token", True),
    "nothing": ("", "bad_token", True),
    "a number": (5, "bad_token", True),
}  # fmt: skip


def test_an_honest_presentation_is_valid_for_us_and_for_others():
    credential = judge(present())
    assert credential.vct == VCT and credential.claims["degree"] == "Maths"
    assert set(credential.disclosed) == {("degree",), ("name",)}
    verified = judged_by_another(present())
    assert verified.key_bound and verified.claims["degree"] == "Maths"


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_presentation_is_refused(name):
    text, code, is_refused_by_another = FORGED[name]
    assert refusal(PeerError, judge, text).code == code
    if is_refused_by_another:
        with pytest.raises((OpenvcError, AttributeError)):
            judged_by_another(text)


def test_disclosures_of_another_presentation_do_not_fit_its_binding():
    whole = present()
    without_name = whole.replace(f"~{NAME}", "")
    assert refusal(PeerError, judge, without_name).code == "bad_binding"
    of_two = present(shown=[DEGREE], digests=[sha256_of(one) for one in (DEGREE, NAME)])
    added = of_two.replace(DEGREE, f"{DEGREE}~{NAME}")
    assert refusal(PeerError, judge, added).code == "bad_binding"


def test_what_is_issued_here_is_read_by_others_and_presented_in_parts():
    issued = sd_jwt.issue(
        FABER.claims(), {"degree": "Mäths", "age": 24}, FABER.secret, FABER.x5c
    )
    stored = sd_jwt.read(issued)
    assert stored.binding == "" and stored.claims["age"] == 24
    shown = sd_jwt.present(
        stored, [("degree",)], AUDIENCE, NONCE, FABER.holder, int(time.time())
    )
    assert judge(shown).claims.keys() - FABER.claims().keys() == {"degree"}
    assert judged_by_another(shown).claims["degree"] == "Mäths"


def test_salts_differ_and_digests_do_not_tell_the_order():
    issued = [
        sd_jwt.issue(FABER.claims(), {"a": 1, "b": 1}, FABER.secret, FABER.x5c)
        for _ in range(20)
    ]
    tokens = [sd_jwt.read(text) for text in issued]
    digests = [tuple(token.token.payload["_sd"]) for token in tokens]
    assert len(set(sum(digests, ()))) == 40
    assert all(tuple(sorted(one)) == one for one in digests)


def test_what_lies_in_claims_and_arrays_is_disclosed_by_itself():
    """The structures of RFC 9901, made by the Python package of its authors."""
    from jwcrypto.jwk import JWK

    jwk = signing.public_jwk_of(FABER.secret)
    private = JWK(**jwk, d=signing.encode_base64url(FABER.secret))
    claims = FABER.claims() | {
        SDObj("address"): {SDObj("street"): "Main", "town": "Town"},
        "nations": [SDObj("DE"), "FR", SDObj("US")],
    }
    made = SDJWTIssuer(claims, private, extra_header_parameters={"typ": sd_jwt.TYP})
    stored = sd_jwt.read(made.sd_jwt_issuance)
    assert stored.claims["address"] == {"street": "Main", "town": "Town"}
    assert stored.claims["nations"] == ["DE", "FR", "US"]

    def shown(*paths):
        return sd_jwt.read(
            sd_jwt.present(stored, paths, AUDIENCE, NONCE, FABER.holder, NOW)
        ).claims

    assert "address" not in shown() and shown()["nations"] == ["FR"]
    assert shown(("address", "town"))["address"] == {"town": "Town"}
    assert shown(("address",))["address"] == {"street": "Main", "town": "Town"}
    assert shown(("nations", 2))["nations"] == ["FR", "US"]
    assert shown(("nations", None))["nations"] == ["DE", "FR", "US"]


def test_the_samples_of_the_specifications_are_read():
    issued = sd_jwt.read(SAMPLE["issued"])
    issued.verify(signing.read_public_key(_public(SAMPLE["keys"]["issuer"])))
    assert issued.claims["given_name"] == "John"
    expected = SAMPLE["presentation"]
    shown = sd_jwt.read(expected["sd_jwt_kb"])
    assert shown.claims == expected["verified"]
    made_at = signing.read_token(shown.binding, "kb+jwt").payload["iat"]
    shown.verify_binding(expected["aud"], expected["nonce"], made_at)
    for one in SAMPLE["disclosures"]:
        assert sha256_of(one["disclosure"]) == one["sha256"]


def test_paths_select_what_the_specification_says():
    sample = VECTORS["openid4vp"]["claims_path"]
    for path, selected in sample["selects"]:
        assert sd_jwt.find_claims(sample["document"], tuple(path)) == selected


def _public(jwk):
    return {name: jwk[name] for name in ("kty", "crv", "x", "y")}
