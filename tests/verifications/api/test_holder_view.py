"""The `proof` on the holder's side: what it revealed, whatever the verdict is."""

import pytest

from tests.support.errors import error_of
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
NOT_SHOWN = {"revealed": False, "selfAttested": False}
POLICY = {
    "attributes": [{"policyName": "Name", "attributeNames": ["name"]}],
    "predicates": [
        {
            "policyName": "Of age",
            "attributeName": "age",
            "predicateType": ">=",
            "predicateValue": 18,
        }
    ],
}


@pytest.fixture
def alice(faber):
    holder = faber.hosts()
    holder.receives(faber, faber.defines("name", "degree", "age"), VALUES)
    return holder


def newest_proof(holder):
    return holder.newest("verifications")["proof"]


def test_a_bound_belongs_to_its_item_on_both_sides(faber, alice):
    asked = faber.asks(alice, **POLICY)
    seen = alice.newest("verifications")
    row = Verification.objects.get(role="verifier")
    assert list(row.require_proof_request()["requested_predicates"]) == [
        "Of age",
        "Of age#bound",
    ]
    assert (
        seen["policy"]["predicates"]
        == asked["policy"]["predicates"]
        == POLICY["predicates"]
    )
    path = f"/verifications/{seen['verificationId']}"
    offered = alice.get(f"{path}/availableCredentials")
    assert [one["policyName"] for one in offered] == ["Name", "Of age"]
    held = alice.newest("credentials")["credentialId"]
    error = error_of(alice.put, path, [chosen("Of age#bound", held)])
    assert error.code == "unknown_policy"
    alice.put(path, [chosen("Name", held), chosen("Of age", held)])
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert result["isValid"] and set(result["proof"]) == {"Name", "Of age"}
    assert {one.get("policyName") for one in result["checks"]} == {
        None,
        "Name",
        "Of age",
    }
    assert alice.newest("verifications")["proof"] == result["proof"]


def chosen(policy_name, credential_id):
    return {"policyName": policy_name, "credentialId": credential_id}


@pytest.mark.parametrize(
    ("age", "kind", "value"),
    [
        ("0", ">=", 0),
        ("1", ">", 0),
        ("2147483647", ">=", 2147483647),
        ("2147483647", ">", 2147483646),
        ("2147483647", ">=", 0),
    ],
)
def test_the_bound_holds_for_every_number_that_meets_the_comparison(
    faber, age, kind, value
):
    holder = faber.hosts()
    holder.receives(
        faber, faber.defines("name", "degree", "age"), VALUES | {"age": age}
    )
    compared = {"attributeName": "age", "predicateType": kind, "predicateValue": value}
    asked = faber.asks(holder, predicates=[compared])
    holder.auto_selects()
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True


@pytest.mark.parametrize("age", ["-1", "-2147483648", "unknown"])
def test_a_negative_number_or_a_text_is_not_sent_at_all(faber, age):
    holder = faber.hosts()
    holder.receives(
        faber, faber.defines("name", "degree", "age"), VALUES | {"age": age}
    )
    asked = faber.asks(holder, **POLICY)
    holder.auto_selects()
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert result["isValid"] is False and result["proof"]["Name"]["value"] == "Alice"
    assert {one["code"] for one in result["checks"] if "code" in one} == {"unanswered"}


def test_a_request_shows_nothing_yet(faber, alice):
    faber.asks(alice, **POLICY)
    assert "proof" not in alice.newest("verifications")


def test_both_sides_see_what_was_shown(faber, alice):
    asked = faber.asks(alice, **POLICY)
    alice.auto_selects()
    assert (
        newest_proof(alice)
        == faber.get(f"/verifications/{asked['verificationId']}")["proof"]
    )
    assert newest_proof(alice)["Name"]["value"] == "Alice"


def test_a_hidden_value_is_not_among_it(faber, alice):
    faber.asks(alice, **POLICY)
    held = alice.newest("credentials")["credentialId"]
    chosen = [
        {"policyName": "Name", "credentialId": held, "hidden": True},
        {"policyName": "Of age", "credentialId": held},
    ]
    alice.put(
        f"/verifications/{alice.newest('verifications')['verificationId']}", chosen
    )
    assert (
        newest_proof(alice)["Name"]
        == {"name": "name", "conditional": False} | NOT_SHOWN
    )


def test_an_item_without_an_answer_has_no_value(faber, alice):
    stranger = faber.hosts("Bob")
    faber.asks(stranger, **POLICY)
    stranger.auto_selects()
    assert (
        newest_proof(stranger)["Name"]
        == {"name": "name", "conditional": False} | NOT_SHOWN
    )
    assert newest_proof(stranger)["Of age"]["value"] == "false"
