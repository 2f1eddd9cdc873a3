"""What a policy asks of wallets that hold SD-JWT VCs."""

import pytest

from core.errors import Conflict
from credentials.models.definition_format import text_of
from tests.support.errors import refusal
from tests.support.presentations import attribute, policy_of, predicate, required
from verifications.openid4vp import queries
from verifications.openid4vp.queries import DerivedClaim, Query, Source
from verifications.proofs import proof_policy

OURS, STATE = {"credentialDefinitionId": "d"}, {"vct": "urn:eu:pid"}
BADGE = {"credentialDefinitionId": "b"}
DEGREE = Source(
    "Degree",
    "https://faber/degree",
    issuer="https://faber",
    claims={"name": "Name", "age": "age", "born": "born"},
    kinds={"age": "integer", "born": "date"},
    derived=(
        DerivedClaim("over_16", "age", ">=", 16),
        DerivedClaim("over_18", "age", ">", 17),
        DerivedClaim("over_21", "age", ">=", 21),
        DerivedClaim("adult", "born", "<=", 20081128),
    ),
)
SOURCES = {
    "d": [DEGREE],
    "b": [Source("Badge", "https://faber/badge", "https://faber", claims={"role": "role"})],
    "urn:eu:pid": [Source("urn:eu:pid", "urn:eu:pid", anchors=("AAAA",))],
}  # fmt: skip


def sources_of(restriction):
    facts = restriction.facts
    return SOURCES.get(facts.get("vct") or facts.get("credentialDefinitionId"), [])


def compiled(*items):
    policy = proof_policy.normalise(policy_of(*items))
    found = queries.compile_queries(policy, sources_of)
    assert [Query.from_json(one.to_json()) for one in found] == found
    return found


def asked(*items):
    return queries.write_dcql(compiled(*items))


def paths(query):
    return [(claim["path"], claim.get("values")) for claim in query["claims"]]


def test_items_with_the_same_restrictions_are_asked_of_one_credential():
    body = asked(attribute("name", OURS), predicate("age", ">=", 18, OURS))
    [query] = body["credentials"]
    assert query["meta"] == {"vct_values": ["https://faber/degree"]}
    assert query["format"] == "dc+sd-jwt" and "credential_sets" not in body
    assert paths(query) == [(["Name"], None), (["over_18"], [True])]


def test_kinds_of_credentials_are_alternatives():
    body = asked(attribute("name", OURS, STATE), attribute("role", BADGE))
    assert [one["meta"]["vct_values"][0] for one in body["credentials"]] == [
        "https://faber/degree", "urn:eu:pid", "https://faber/badge",
    ]  # fmt: skip
    assert body["credential_sets"] == [
        {"options": [["q0"], ["q1"]]},
        {"options": [["q2"]]},
    ]


def test_items_that_no_credential_has_together_are_asked_one_by_one():
    body = asked(attribute("name", OURS, BADGE), attribute("role", OURS, BADGE))
    assert [paths(one) for one in body["credentials"]] == [
        [(["Name"], None)],
        [(["role"], None)],
    ]


@pytest.mark.parametrize(("kind", "limit", "claim"), [
    (">=", 16, "over_16"), (">", 15, "over_16"), (">=", 17, "over_18"),
    (">=", 18, "over_18"), (">", 17, "over_18"), (">=", 19, "over_21"),
    (">", 20, "over_21"), (">=", 22, None), (">", 21, None), ("<=", 16, None),
    ("<", 30, None), ("==", 18, None),
])  # fmt: skip
def test_a_predicate_is_proven_by_the_weakest_claim_that_implies_it(kind, limit, claim):
    item = predicate("age", kind, limit, OURS)
    if claim:
        [query] = asked(item)["credentials"]
        assert paths(query) == [([claim], [True])]
    else:
        refused = refusal(Conflict, asked, item)
        assert refused.code == "not_provable" and "derivedClaims" in refused.message


@pytest.mark.parametrize(("kind", "day", "is_proven"), [
    ("<=", 20081128, True), ("<", 20081129, True), ("<=", 20091128, True),
    ("<", 20081128, False), ("<=", 20081127, False), (">=", 20081128, False),
])  # fmt: skip
def test_a_date_is_compared_like_a_number(kind, day, is_proven):
    item = predicate("born", kind, day, OURS)
    if is_proven:
        assert paths(asked(item)["credentials"][0]) == [(["adult"], [True])]
    else:
        refusal(Conflict, asked, item)


def test_each_of_the_claims_that_prove_a_predicate_may_be_shown():
    given = STATE | {"provenBy": ["over_18", "over_21"]}
    [query] = asked(attribute("name", STATE), predicate("age", ">", 17, given))[
        "credentials"
    ][1:]
    assert query["claims"] == [
        {"id": "c0", "path": ["over_18"], "values": [True]},
        {"id": "c1", "path": ["over_21"], "values": [True]},
    ]
    assert query["claim_sets"] == [["c0"], ["c1"]]


def test_required_values_have_the_type_of_the_claim():
    value = required("born", "20080131")
    other = required("Born", "20080201")
    [query] = asked(attribute("name", OURS | value, OURS | other))["credentials"]
    assert paths(query)[1] == (["born"], ["2008-01-31", "2008-02-01"])
    [query] = asked(attribute("name", STATE | required("age", "18")))["credentials"]
    assert paths(query)[1] == (["age"], ["18", 18])
    [query] = asked(attribute("name", OURS | value, OURS))["credentials"]
    assert paths(query) == [(["Name"], None)]


def test_a_required_value_of_thousands_of_digits_is_a_text():
    digits = "9" * 5000
    for restriction, claim in ((OURS, "age"), (STATE, "size")):
        value = required(claim, digits)
        [query] = asked(attribute(claim, restriction | value))["credentials"]
        assert paths(query) == [([claim], None if restriction is OURS else [digits])]


@pytest.mark.parametrize(("item", "why"), [
    (attribute("name"), "no restriction"),
    (attribute("name", {"schemaId": "s"}), "no definition"),
    (attribute("iban", OURS), "Degree does not have all"),
    (attribute("name", OURS | required("iban", "x")), "Degree does not have all"),
])  # fmt: skip
def test_what_no_credential_can_answer_is_not_asked_for(item, why):
    refused = refusal(Conflict, asked, attribute("role", BADGE), item)
    assert refused.code == "not_provable" and why in refused.message
    assert list(refused.errors) == ["name" if item["policyName"] == "name" else "iban"]


def test_values_have_the_text_that_anoncreds_has():
    for kind, value, text in [
        ("date", "1990-01-31", "19900131"), ("integer", 5, "5"),
        ("boolean", True, "true"), (None, "a-b", "a-b"), (None, 1.5, "1.5"),
        (None, {}, None), (None, [], None), (None, None, None),
    ]:  # fmt: skip
        assert text_of(value, kind) == text
