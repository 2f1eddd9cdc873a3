"""The oldest clients' verification definitions: policies written as proof requests."""

import pytest

from tests.support.errors import assert_error, error_of
from tests.support.presentations import attribute, policy_of, predicate, required
from verifications.api import legacy_requests
from verifications.proofs import proof_policy

UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
COMPARED = {"name": "age", "predicateType": ">=", "predicateValue": 18}
NAMED = {
    "schemaId": "s", "schemaIssuerDid": "d", "schemaName": "n", "schemaVersion": "1.0",
    "issuerDid": "i", "credentialDefinitionId": "c",
}  # fmt: skip
VALUED = {"attributeValue": {"name": "degree", "value": "Maths"}}
CAMEL = {
    "name": "Licence check",
    "version": "1.0",
    "nonce": "7",
    "requestedAttributes": {
        "Name": {"name": "name", "restrictions": [NAMED, VALUED]},
        "Both": {"names": ["degree", "year"]},
    },
    "requestedPredicates": {"Old enough": COMPARED},
    "nonRevoked": {"from": 1768000000, "to": 1769846400},
}
NAMED_IN_SNAKE = {
    "schema_id": "s", "schema_issuer_did": "d", "schema_name": "n",
    "schema_version": "1.0", "issuer_did": "i", "cred_def_id": "c",
}  # fmt: skip
SNAKE = {
    "name": "Licence check",
    "version": "1.0",
    "requested_attributes": {
        "Name": {"name": "name", "restrictions": [NAMED_IN_SNAKE, VALUED]},
        "Both": {"names": ["degree", "year"]},
    },
    "requested_predicates": {
        "Old enough": {"name": "age", "p_type": ">=", "p_value": "18"}
    },
    "non_revoked": {"to": 1769846400},
}
RESTRICTIONS = [NAMED, required("degree", "Maths")]
POLICY = proof_policy.normalise(
    policy_of(
        attribute("Name", *RESTRICTIONS, attributeNames=["name"]),
        attribute("Both", attributeNames=["degree", "year"]),
        predicate("age", ">=", 18, policyName="Old enough"),
        name="Licence check",
        revocationRequirement={"validAt": "2026-01-31T08:00:00.000000Z"},
    )
).to_json()


def define(faber, body=CAMEL):
    return faber.post("/definitions/verifications", body)


def test_either_spelling_becomes_the_same_policy_and_an_items_interval_counts(faber):
    for body in (CAMEL, SNAKE):
        made = define(faber, body)
        stored = faber.get(f"/verificationPolicies/{made['id']}")
        assert stored == stored | {"policyId": made["id"], **POLICY}
    attributes = {"Name": {"name": "name", "nonRevoked": {"from": 5}}}
    body = {"name": "P", "version": "1", "requestedAttributes": attributes}
    stored = faber.get(f"/verificationPolicies/{define(faber, body)['id']}")
    assert stored["revocationRequirement"] == {"validNow": True}


def test_it_is_answered_in_both_spellings(faber):
    made = define(faber)
    asked = made["proofRequest"]
    for camel, snake in (
        ("requestedAttributes", "requested_attributes"),
        ("requestedPredicates", "requested_predicates"),
        ("nonRevoked", "non_revoked"),
    ):
        assert asked[camel] == asked[snake]
    one = asked["requestedPredicates"]["Old enough"]
    assert (one["predicateType"], one["p_type"]) == (">=", ">=")
    assert (one["predicateValue"], one["p_value"]) == (18, 18)
    names, value = asked["requestedAttributes"]["Name"]["restrictions"]
    assert names["credentialDefinitionId"] == names["cred_def_id"] == "c"
    assert value == VALUED
    assert define(faber, asked)["proofRequest"] == asked


def test_every_policy_is_a_definition_and_deleted_as_one(faber):
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    made = define(faber)
    listed = faber.get("/definitions/verifications")
    assert [one["id"] for one in listed] == [made["id"], stored]
    assert faber.get(f"/definitions/verifications/{stored}") == listed[1]
    assert listed[1]["proofRequest"] == made["proofRequest"]
    for one in listed:
        faber.delete(f"/definitions/verifications/{one['id']}")
    for path in ("/definitions/verifications", "/verificationPolicies"):
        assert faber.get(path) == []


@pytest.mark.parametrize(
    "requirement", [None, {"validNow": True}, POLICY["revocationRequirement"]]
)
@pytest.mark.parametrize("kind", [">=", ">", "<=", "<", "=="])
def test_there_and_back_a_policy_is_the_same(requirement, kind):
    predicates = [POLICY["predicates"][0] | {"predicateType": kind}]
    body = POLICY | {"predicates": predicates, "revocationRequirement": requirement}
    request = legacy_requests.from_policy(proof_policy.normalise(body))
    again = legacy_requests.to_policy(request)
    assert legacy_requests.from_policy(again) == request


PAIR = {"names": ["a", "b"]}
BAD = [
    {"name": None}, {"version": None}, {"version": "one"}, {"requestedAttributes": []},
    {"requestedAttributes": {"Name": 7}},
    {"requestedAttributes": {"": {"name": "name"}}},
    {"requestedAttributes": {"Name": {"name": "a", "names": ["b"]}}},
    {"requestedAttributes": {"Name": {"restrictions": [{}]}}},
    {"requestedAttributes": {"Name": {"restrictions": [{"attr::a::value": "1"}]}}},
    {"requestedAttributes": {"Old enough": {"name": "name"}}},
    {"requestedAttributes": {str(n): {"name": "a"} for n in range(200)}},
    {"requestedPredicates": {"A": COMPARED | {"predicateType": "!="}}},
    {"requestedPredicates": {"A": {"name": "a", "p_type": ">=", "p_value": 2**31}}},
    {"requestedPredicates": {"A": PAIR | {"p_type": ">=", "p_value": 1}}},
    {"nonRevoked": {"to": -1}}, {"nonRevoked": {"to": 10**15}},
    {"requestedAttributes": {}, "requestedPredicates": {}},
]  # fmt: skip


def test_a_bad_definition_is_400(faber, subtests):
    for changes in BAD:
        with subtests.test(str(changes)[:80]):
            error = error_of(define, faber, CAMEL | changes)
            assert (error.status, bool(error.body["errors"])) == (400, True)
            assert faber.get("/definitions/verifications") == []


def asking_with(identifier, **more):
    return {"verificationDefinitionId": identifier} | more


def test_it_is_sent_to_a_connection_or_is_a_link(faber):
    alice, made = faber.hosts(), define(faber, CAMEL | {"nonRevoked": None})
    body = asking_with(made["id"], connectionId=alice.known_as(faber))
    asked = faber.post("/verifications", body)
    assert (asked["state"], asked["definitionId"]) == ("Requested", made["id"])
    assert alice.newest("verifications")["policy"]["name"] == "Licence check"
    assert faber.get("/verifications", definitionId=made["id"]) == [asked]
    asked = faber.post("/verifications", asking_with(made["id"]))
    assert asked["verificationRequestUrl"] == asked["verificationUrl"]
    assert "connectionId" not in asked


def test_what_is_not_there_is_404(faber, acme):
    made, alice = define(faber), faber.hosts()
    absent = (acme, made["id"]), (faber, UNKNOWN), (faber, "x")
    for organization, identifier in absent:
        path = f"/definitions/verifications/{identifier}"
        assert_error(error_of(organization.get, path), 404, "not_found")
        assert_error(error_of(organization.delete, path), 404, "not_found")
        body = asking_with(identifier, connectionId=alice.known_as(faber))
        error = error_of(organization.post, "/verifications", body)
        assert_error(error, 404, "not_found")
    body = {"connectionId": alice.known_as(faber)}
    error = error_of(faber.post, "/verifications", body)
    assert "verificationDefinitionId" in error.body["errors"]


def test_text_is_allowed_in_a_definition_too():
    asked = {"Old": COMPARED | {"allowText": True}}
    body = {"name": "P", "version": "1.0", "requestedPredicates": asked}
    written = legacy_requests.to_policy(body)
    assert written.predicates[0].allows_text
    again = legacy_requests.from_policy(written)["requestedPredicates"]["Old"]
    assert again["allowText"] is True
