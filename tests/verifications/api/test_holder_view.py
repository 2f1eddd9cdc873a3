"""The `proof` on the holder's side: what it revealed, whatever the verdict is."""

from tests.support.errors import error_of
from tests.support.steps import step
from verifications.models import Verification

VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
NOT_SHOWN = {"name": "name", "revealed": False, "selfAttested": False}
NOT_SHOWN |= {"conditional": False, "format": "anoncreds"}
OF_AGE = {"policyName": "Of age", "attributeName": "age"}
OF_AGE |= {"predicateType": ">=", "predicateValue": 18}
POLICY = {
    "attributes": [{"policyName": "Name", "attributeNames": ["name"]}],
    "predicates": [OF_AGE],
}


@step
def alice(faber):
    holder = faber.hosts()
    holder.receives(faber, faber.defines(*VALUES), VALUES)
    return holder


def newest_proof(holder):
    return holder.newest("verifications")["proof"]


def test_a_bound_belongs_to_its_item_on_both_sides(faber, alice):
    asked = faber.asks(alice, **POLICY)
    seen = alice.newest("verifications")
    row = Verification.objects.get(role="verifier")
    requested = row.require_proof_request().body["requested_predicates"]
    assert list(requested) == ["Of age", "Of age#bound"]
    assert seen["policy"]["predicates"] == asked["policy"]["predicates"] == [OF_AGE]
    path = f"/verifications/{seen['verificationId']}"
    offered = alice.get(f"{path}/availableCredentials")
    assert [one["policyName"] for one in offered] == ["Name", "Of age"]
    held = alice.newest("credentials")["credentialId"]
    error = error_of(alice.put, path, [chosen("Of age#bound", held)])
    assert error.code == "unknown_policy"
    alice.put(path, [chosen("Name", held), chosen("Of age", held)])
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert result["isValid"] and set(result["proof"]) == {"Name", "Of age"}
    named = {one.get("policyName") for one in result["checks"]}
    assert named == {None, "Name", "Of age"}
    assert alice.newest("verifications")["proof"] == result["proof"]


def chosen(policy_name, credential_id):
    return {"policyName": policy_name, "credentialId": credential_id}


def test_both_sides_see_what_was_shown_once_it_was_shown(faber, alice):
    asked = faber.asks(alice, **POLICY)
    assert "proof" not in alice.newest("verifications")
    alice.auto_selects()
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert newest_proof(alice) == result["proof"]
    assert newest_proof(alice)["Name"]["value"] == "Alice"


def test_what_is_hidden_or_not_answered_has_no_value(faber, alice):
    faber.asks(alice, **POLICY)
    held = alice.newest("credentials")["credentialId"]
    path = f"/verifications/{alice.newest('verifications')['verificationId']}"
    alice.put(path, [chosen("Name", held) | {"hidden": True}, chosen("Of age", held)])
    assert newest_proof(alice)["Name"] == NOT_SHOWN
    stranger = faber.hosts("Bob")
    faber.asks(stranger, **POLICY)
    stranger.auto_selects()
    assert newest_proof(stranger)["Name"] == NOT_SHOWN
    assert newest_proof(stranger)["Of age"]["value"] == "false"
