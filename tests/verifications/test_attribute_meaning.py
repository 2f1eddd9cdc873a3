"""What an attribute item asks for: the clients' reading or the interface's."""

import pytest

from tests.fixtures import ledger, stored
from tests.support.errors import assert_error, error_of
from tests.support.presentations import attribute, policy_of
from tests.support.steps import step
from verifications.attribute_meaning import resolve_attributes
from verifications.proofs import proof_policy

VALUES = {"name": "Ann", "level": "7"}
DEGREE, BADGE = stored("degree"), stored("badge")
BY_SCHEMA = {"schemaId": DEGREE.schema_id}
BY_DEFINITION = {"credentialDefinitionId": DEGREE.definition_id}
BADGES = {"credentialDefinitionId": BADGE.definition_id}
BY_NAME = {
    "schemaIssuerDid": DEGREE.schema["issuerId"],
    "schemaName": DEGREE.schema["name"],
    "schemaVersion": DEGREE.schema["version"],
}


def attributes_asked_for(name, names, *restrictions):
    """The attributes that are asked for."""
    item = attribute(name, *restrictions, attributeNames=names)
    body = proof_policy.normalise(policy_of(item))
    return list(resolve_attributes(body, ledger()).attributes[0].attribute_names)


@pytest.mark.parametrize("restriction", [BY_SCHEMA, BY_DEFINITION, BY_NAME])
def test_a_name_that_only_the_interface_can_mean_is_the_attribute(restriction):
    assert attributes_asked_for("name", ["Full name"], restriction) == ["name"]
    names = ["Your full name", "Alias"]
    assert attributes_asked_for("Name ", names, restriction) == ["Name "]


@pytest.mark.parametrize("name, names, restrictions", [
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
    ("degree", ["Title"], [BY_DEFINITION, BADGES]),
])  # fmt: skip
def test_everything_else_is_what_the_clients_mean(name, names, restrictions):
    assert attributes_asked_for(name, names, *restrictions) == names


@step
def alice(faber):
    alice = faber.hosts()
    alice.definition = faber.defines("name", "level")
    alice.receives(faber, alice.definition, VALUES)
    return alice


def item(alice):
    restriction = {"credentialDefinitionId": alice.definition["definitionId"]}
    return attribute("name", restriction, attributeNames=["Name of the dog"])


def test_an_item_of_the_interface_is_answered_also_stored_and_tried(faber, alice):
    sent = faber.asks(alice, attributes=[item(alice)])
    alice.auto_selects()
    result = faber.get(f"/verifications/{sent['verificationId']}")
    assert result["isValid"] and result["proof"]["name"]["value"] == "Ann"
    assert result["proof"]["name"]["attributes"] == {"name": "Ann"}
    assert result["policy"]["attributes"] == [item(alice)], "as it was written"
    policy_id = faber.post("/verificationPolicies", policy_of(item(alice)))["policyId"]
    sample = {"definitionId": alice.definition["definitionId"]} | {"values": VALUES}
    trial = {"policyId": policy_id, "credentials": [sample]}
    tried = faber.post("/verificationPolicies/try", trial)
    assert tried["satisfied"] is True
    assert [one["code"] for one in tried["lint"]] == ["two_readings"]
    sent = faber.put(f"/verifications/policy/{policy_id}")
    data = {"verificationData": sent["verificationRequestUrl"]}
    alice.put_form("/verifications/fromData/autoSelect", **data)
    assert faber.get(f"/verifications/{sent['verificationId']}")["isValid"] is True


def test_a_policy_that_asks_for_nothing_is_400_and_says_so(faber):
    for body in ({}, {"attributes": []}, {"attributes": None, "predicates": []}):
        body |= {"name": "P", "version": "1.0"}
        error = error_of(faber.post, "/verificationPolicies", body)
        assert_error(error, 400, "invalid_policy")
        assert "Ask for at least one attribute or predicate" in error.body["message"]
