"""The oldest clients' verification definitions: policies written as proof requests."""

import pytest

from tests.support.errors import assert_error, error_of
from verifications.api import legacy_requests
from verifications.proofs import proof_policy

pytestmark = pytest.mark.django_db(transaction=True)
ALLOWED = {
    "allowText": True,
    "name": "age",
    "predicateType": ">=",
    "predicateValue": 18,
}
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
CAMEL = {
    "name": "Licence check",
    "version": "1.0",
    "nonce": "7",
    "requestedAttributes": {
        "Name": {
            "name": "name",
            "restrictions": [
                {
                    "schemaId": "s",
                    "schemaIssuerDid": "d",
                    "schemaName": "n",
                    "schemaVersion": "1.0",
                    "issuerDid": "i",
                    "credentialDefinitionId": "c",
                },
                {"attributeValue": {"name": "degree", "value": "Maths"}},
            ],
        },
        "Both": {"names": ["degree", "year"]},
    },
    "requestedPredicates": {
        "Old enough": {"name": "age", "predicateType": ">=", "predicateValue": 18}
    },
    "nonRevoked": {"from": 1768000000, "to": 1769846400},
}
SNAKE = {
    "name": "Licence check",
    "version": "1.0",
    "requested_attributes": {
        "Name": {
            "name": "name",
            "restrictions": [
                {
                    "schema_id": "s",
                    "schema_issuer_did": "d",
                    "schema_name": "n",
                    "schema_version": "1.0",
                    "issuer_did": "i",
                    "cred_def_id": "c",
                },
                {"attributeValue": {"name": "degree", "value": "Maths"}},
            ],
        },
        "Both": {"names": ["degree", "year"]},
    },
    "requested_predicates": {
        "Old enough": {"name": "age", "p_type": ">=", "p_value": "18"}
    },
    "non_revoked": {"to": 1769846400},
}
POLICY = {
    "name": "Licence check",
    "version": "1.0",
    "attributes": [
        {
            "policyName": "Name",
            "attributeNames": ["name"],
            "restrictions": [
                {
                    "schemaId": "s",
                    "schemaIssuerDid": "d",
                    "schemaName": "n",
                    "schemaVersion": "1.0",
                    "issuerDid": "i",
                    "credentialDefinitionId": "c",
                },
                {"value": {"attributeName": "degree", "attributeValue": "Maths"}},
            ],
        },
        {"policyName": "Both", "attributeNames": ["degree", "year"]},
    ],
    "predicates": [
        {
            "policyName": "Old enough",
            "attributeName": "age",
            "predicateType": ">=",
            "predicateValue": 18,
        }
    ],
    "revocationRequirement": {"validAt": "2026-01-31T08:00:00.000000Z"},
}


def define(faber, body=CAMEL):
    return faber.post("/definitions/verifications", body)


@pytest.mark.parametrize("body", [CAMEL, SNAKE], ids=["camelCase", "snake_case"])
def test_either_spelling_becomes_the_same_policy(faber, body):
    made = define(faber, body)
    assert faber.get(f"/verificationPolicies/{made['id']}") == {
        "policyId": made["id"],
        **POLICY,
    }


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
    assert value == {"attributeValue": {"name": "degree", "value": "Maths"}}


def test_every_policy_is_a_definition(faber):
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    made = define(faber)
    listed = faber.get("/definitions/verifications")
    assert [one["id"] for one in listed] == [made["id"], stored]
    assert faber.get(f"/definitions/verifications/{stored}") == listed[1]
    assert listed[1]["proofRequest"] == made["proofRequest"]


def test_a_verification_definition_is_deleted(faber):
    made = define(faber)
    faber.delete(f"/definitions/verifications/{made['id']}")
    assert (
        faber.get("/definitions/verifications")
        == faber.get("/verificationPolicies")
        == []
    )


@pytest.mark.parametrize(
    "requirement", [None, {"validNow": True}, POLICY["revocationRequirement"]]
)
@pytest.mark.parametrize("kind", [">=", ">", "<=", "<", "=="])
def test_there_and_back_a_policy_is_the_same(faber, requirement, kind):
    predicates = [POLICY["predicates"][0] | {"predicateType": kind}]
    body = POLICY | {"predicates": predicates, "revocationRequirement": requirement}
    normal = proof_policy.normalise(body)
    request = legacy_requests.from_policy(normal)
    made = define(faber, request)
    assert made["proofRequest"] == request


def test_an_items_interval_counts_too(faber):
    attributes = {"Name": {"name": "name", "nonRevoked": {"from": 5}}}
    made = define(
        faber, {"name": "P", "version": "1", "requestedAttributes": attributes}
    )
    stored = faber.get(f"/verificationPolicies/{made['id']}")
    assert stored["revocationRequirement"] == {"validNow": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"version": None},
        {"version": "one"},
        {"requestedAttributes": []},
        {"requestedAttributes": {"Name": 7}},
        {"requestedAttributes": {"": {"name": "name"}}},
        {"requestedAttributes": {"Name": {"name": "a", "names": ["b"]}}},
        {"requestedAttributes": {"Name": {"restrictions": [{}]}}},
        {"requestedAttributes": {"Name": {"restrictions": [{"attr::a::value": "1"}]}}},
        {"requestedAttributes": {"Old enough": {"name": "name"}}},
        {"requestedAttributes": {str(n): {"name": "a"} for n in range(200)}},
        {
            "requestedPredicates": {
                "A": {"name": "a", "predicateType": "!=", "predicateValue": 1}
            }
        },
        {
            "requestedPredicates": {
                "A": {"name": "a", "p_type": ">=", "p_value": 2**31}
            }
        },
        {
            "requestedPredicates": {
                "A": {"names": ["a", "b"], "p_type": ">=", "p_value": 1}
            }
        },
        {"nonRevoked": {"to": -1}},
        {"nonRevoked": {"to": 10**15}},
        {"requestedAttributes": {}, "requestedPredicates": {}},
    ],
)
def test_a_bad_definition_is_400(faber, changes):
    error = error_of(define, faber, CAMEL | changes)
    assert (error.status, bool(error.body["errors"])) == (400, True)
    assert faber.get("/definitions/verifications") == []


def test_it_is_sent_to_a_connection(faber):
    alice, made = faber.hosts(), define(faber, CAMEL | {"nonRevoked": None})
    body = {
        "verificationDefinitionId": made["id"],
        "connectionId": alice.known_as(faber),
    }
    asked = faber.post("/verifications", body)
    assert (asked["state"], asked["definitionId"]) == ("Requested", made["id"])
    assert alice.newest("verifications")["policy"]["name"] == "Licence check"
    assert faber.get("/verifications", definitionId=made["id"]) == [asked]


def test_without_a_connection_it_is_a_link(faber):
    asked = faber.post(
        "/verifications", {"verificationDefinitionId": define(faber)["id"]}
    )
    assert asked["verificationRequestUrl"] == asked["verificationUrl"]
    assert "connectionId" not in asked


def test_what_is_not_there_is_404(faber, acme):
    made, alice = define(faber), faber.hosts()
    for organization, identifier in (
        (acme, made["id"]),
        (faber, UNKNOWN),
        (faber, "x"),
    ):
        path = f"/definitions/verifications/{identifier}"
        assert_error(error_of(organization.get, path), 404, "not_found")
        assert_error(error_of(organization.delete, path), 404, "not_found")
        body = {
            "verificationDefinitionId": identifier,
            "connectionId": alice.known_as(faber),
        }
        error = error_of(organization.post, "/verifications", body)
        assert_error(error, 404, "not_found")
    error = error_of(
        faber.post, "/verifications", {"connectionId": alice.known_as(faber)}
    )
    assert "verificationDefinitionId" in error.body["errors"]


def test_text_is_allowed_in_a_definition_too():
    body = {"name": "P", "version": "1.0", "requestedPredicates": {"Old": ALLOWED}}
    written = legacy_requests.to_policy(body)
    assert written["predicates"][0]["allowText"] is True
    assert (
        legacy_requests.from_policy(written)["requestedPredicates"]["Old"]["allowText"]
        is True
    )
