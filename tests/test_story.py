"""The main job, from a wallet to a verified proof."""

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_credential_goes_all_the_way(faber):
    alice = faber.hosts("Alice")
    assert alice.meets(faber)["state"] == "Connected"
    definition = faber.defines("name", "degree", "age")
    values = {"name": "Alice", "degree": "Maths", "age": "28"}
    offered = faber.offers(alice, definition, values)
    assert offered["state"] == "Offered"
    alice.accepts_offer()
    path = f"/credentials/{offered['credentialId']}"
    assert faber.get(path)["state"] == "Requested"
    faber.put(path)
    assert faber.get(path)["state"] == "Issued"
    assert alice.newest("credentials")["state"] == "Issued"
    asked = faber.asks(
        alice,
        attributes=[{"policyName": "Name", "attributeNames": ["name"]}],
        predicates=[
            {
                "policyName": "Adult",
                "attributeName": "age",
                "predicateType": ">=",
                "predicateValue": 18,
            }
        ],
    )
    alice.auto_selects()
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert result["state"] == "Accepted"
    assert result["isValid"] is True
    assert result["proof"]["Name"]["value"] == "Alice"
    assert alice.newest("verifications")["isValid"] is True


def test_a_proof_that_is_not_valid_says_why(faber):
    alice = faber.hosts()
    alice.receives(
        faber, faber.defines("Full Name", "level"), {"Full Name": "A", "level": "7"}
    )
    low = {
        "policyName": "High",
        "attributeName": "level",
        "predicateType": ">",
        "predicateValue": 9,
    }
    asked = faber.asks(alice, attributes=[{"policyName": "level"}], predicates=[low])
    alice.auto_selects()
    result = faber.get(f"/verifications/{asked['verificationId']}")
    failed = [check for check in result["checks"] if check["status"] == "fail"]
    assert [(check["policyName"], check["code"]) for check in failed] == [
        ("High", "unanswered")
    ]
    assert failed[0]["message"]
