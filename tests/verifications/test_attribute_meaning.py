"""What an attribute item asks for: the clients' reading or the interface's."""

import pytest

from tests.fixtures import ledger, stored
from tests.support.errors import assert_error, error_of
from verifications.attribute_meaning import resolve_attributes
from verifications.proofs import proof_policy

DEGREE, BADGE = stored("degree"), stored("badge")
BY_SCHEMA = {"schemaId": DEGREE.schema_id}
BY_DEFINITION = {"credentialDefinitionId": DEGREE.definition_id}
BY_NAME = {
    "schemaIssuerDid": DEGREE.schema["issuerId"],
    "schemaName": DEGREE.schema["name"],
    "schemaVersion": DEGREE.schema["version"],
}


def attributes_asked_for(name, names, *restrictions):
    """The attributes that are asked for."""
    item = {
        "policyName": name,
        "attributeNames": names,
        "restrictions": list(restrictions),
    }
    body = proof_policy.normalise(
        {"name": "Proof", "version": "1.0", "attributes": [item]}
    )
    return resolve_attributes(body, ledger())["attributes"][0]["attributeNames"]


@pytest.mark.parametrize("restriction", [BY_SCHEMA, BY_DEFINITION, BY_NAME])
def test_a_name_that_only_the_interface_can_mean_is_the_attribute(restriction):
    assert attributes_asked_for("name", ["Full name"], restriction) == ["name"]
    assert attributes_asked_for("Name ", ["Your full name", "Alias"], restriction) == [
        "Name "
    ]


@pytest.mark.parametrize(
    "name, names, restrictions",
    [
        ("Full name", ["name"], [BY_SCHEMA]),
        ("name", ["degree"], [BY_DEFINITION]),
        ("name", ["Full name", "degree"], [BY_DEFINITION]),
        ("Name", ["name"], [BY_DEFINITION]),
        ("name", ["Full name"], []),
        ("name", ["Full name"], [{"schemaName": DEGREE.schema["name"]}]),
        ("name", ["Full name"], [BY_NAME | {"schemaVersion": "9.9"}]),
        ("name", ["degree"], [BY_NAME]),
        *(("name", ["Full name"], [{**BY_NAME, one: None}]) for one in BY_NAME),
        ("name", ["Full name"], [{"schemaId": "unknown"}]),
        (
            "degree",
            ["Title"],
            [BY_DEFINITION, {"credentialDefinitionId": BADGE.definition_id}],
        ),
    ],
)
def test_everything_else_is_what_the_clients_mean(name, names, restrictions):
    assert attributes_asked_for(name, names, *restrictions) == names


@pytest.fixture
def alice(faber):
    alice = faber.hosts()
    alice.definition = faber.defines("name", "level")
    alice.receives(faber, alice.definition, {"name": "Ann", "level": "7"})
    return alice


def item(alice):
    restriction = {"credentialDefinitionId": alice.definition["definitionId"]}
    return {
        "policyName": "name",
        "attributeNames": ["Name of the dog"],
        "restrictions": [restriction],
    }


def test_an_item_of_the_interface_is_answered(faber, alice):
    sent = faber.asks(alice, attributes=[item(alice)])
    alice.auto_selects()
    result = faber.get(f"/verifications/{sent['verificationId']}")
    assert result["isValid"] and result["proof"]["name"]["value"] == "Ann"
    assert result["proof"]["name"]["attributes"] == {"name": "Ann"}
    assert result["policy"]["attributes"] == [item(alice)], "as it was written"


def test_a_stored_policy_and_its_trial_are_read_in_the_same_way(faber, alice):
    body = {"name": "P", "version": "1.0", "attributes": [item(alice)]}
    stored_policy = faber.post("/verificationPolicies", body)
    sample = {
        "definitionId": alice.definition["definitionId"],
        "values": {"name": "Ann", "level": "7"},
    }
    tried = faber.post(
        "/verificationPolicies/try",
        {"policyId": stored_policy["policyId"], "credentials": [sample]},
    )
    assert tried["satisfied"] is True
    assert [one["code"] for one in tried["lint"]] == ["two_readings"]
    sent = faber.put(f"/verifications/policy/{stored_policy['policyId']}")
    alice.put_form(
        "/verifications/fromData/autoSelect",
        verificationData=sent["verificationRequestUrl"],
    )
    assert faber.get(f"/verifications/{sent['verificationId']}")["isValid"] is True


@pytest.mark.parametrize(
    "body", [{}, {"attributes": []}, {"attributes": None, "predicates": []}]
)
def test_a_policy_that_asks_for_nothing_is_400_and_says_so(faber, body):
    error = error_of(
        faber.post, "/verificationPolicies", {"name": "P", "version": "1.0"} | body
    )
    assert_error(error, 400, "invalid_policy")
    assert "Ask for at least one attribute or predicate" in error.body["message"]
