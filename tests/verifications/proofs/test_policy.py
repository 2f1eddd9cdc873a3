"""A policy as a value: its JSON goes in and out unchanged."""

import json

import pytest

from tests.support.presentations import attribute, policy_of, predicate, required
from verifications.proofs import proof_policy
from verifications.proofs.policy import Policy, Restriction

TWO = [
    {"issuerDid": "i", "schemaName": "s"} | required("degree", ""),
    {"schemaId": "x"},
]
TIMES = {"validFrom": "2030-01-31T12:00:00Z", "validAt": "2030-02-01T12:00:00Z"}
BODIES = [
    policy_of(attribute("name")),
    policy_of(
        attribute("who", *TWO, attributeNames=["name", "degree"]),
        attribute("name", *TWO, revocationRequirement=TIMES),
        predicate("age", "==", 18, *TWO, policyName="eighteen"),
        predicate("age", ">=", "today-18y", allowText=True),
        predicate("year", "<", 1, *TWO, revocationRequirement=TIMES, allowText=True),
        revocationRequirement={"validNow": True, "graceSeconds": 0},
    ),
    policy_of(attribute("name"), revocationRequirement={"validNow": False}),
    policy_of(attribute("name"), revocationRequirement=TIMES | {"validNow": False}),
]


@pytest.mark.parametrize("body", BODIES)
def test_stored_json_comes_out_byte_for_byte(body):
    stored = json.dumps(proof_policy.normalise(body).to_json())
    read = Policy.from_json(json.loads(stored))
    assert json.dumps(read.to_json()) == stored
    assert read == proof_policy.normalise(body)


def test_the_json_of_a_policy_has_its_members_in_one_order():
    [item] = proof_policy.normalise(BODIES[1]).to_json()["predicates"][2:]
    assert list(item) == [
        "policyName", "attributeName", "predicateType", "predicateValue",
        "restrictions", "revocationRequirement", "allowText",
    ]  # fmt: skip
    assert list(item["restrictions"][0]) == ["schemaName", "issuerDid", "value"]


def test_an_alternative_that_restricts_nothing_cannot_be_made():
    for build in (lambda: Restriction({}), lambda: Restriction.from_json({})):
        with pytest.raises(ValueError, match="restricts nothing"):
            build()


def test_an_alternative_is_met_only_by_all_that_it_says():
    restriction = Restriction({"schemaName": "Degree", "issuerDid": "did"})
    facts = {"schemaName": "Degree", "issuerDid": "did", "schemaId": "s"}
    assert restriction.matches(facts)
    for other in ({"issuerDid": "DID"}, {"schemaName": ""}):
        assert not restriction.matches(facts | other)
    assert not restriction.matches({"issuerDid": "did"})
