"""What `try` says of samples is what a real wallet with these credentials does."""

import pytest

from tests.support.people import ApiError
from tests.support.presentations import attribute, policy_of, predicate, required
from tests.support.steps import step

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def policies(faber, degree, badge):
    """Items of policies, by what they are about."""
    degrees, badges = (
        {"credentialDefinitionId": one["definitionId"]} for one in (degree, badge)
    )
    issuer = {"issuerDid": badge["definitionId"].split(":")[0]}
    return {
        "a name": [attribute("name")],
        "two credentials": [attribute("name"), attribute("level")],
        "a group": [attribute("who", attributeNames=["NAME", "De gree"])],
        "two in a group": [attribute("who", attributeNames=["name", "level"])],
        "nobody's attribute": [attribute("name"), attribute("salary")],
        "a definition": [attribute("name", degrees), attribute("Full Name", badges)],
        "the wrong definition": [attribute("name", badges)],
        "one of two": [attribute("name", badges, issuer | {"schemaVersion": "1.0"})],
        "all of two": [attribute("name", issuer | {"schemaVersion": "2.0"})],
        "a value": [attribute("name", degrees | required("degree", "Maths"))],
        "another value": [attribute("name", degrees | required("degree", "maths"))],
        "old enough": [predicate("age", ">=", 28, degrees)],
        "too young": [predicate("age", ">", 28, degrees)],
        "equal": [predicate("age", "==", 28)],
        "text": [predicate("degree", ">", 1)],
        "too far apart": [predicate("age", ">=", -(2**31))],
        "shown and compared": [
            attribute("age"),
            predicate("age", "<", 90, policyName="below"),
        ],  # fmt: skip
        "the second of two": [predicate("level", "<", 7, badges)],
        "the revoked one alone": [predicate("level", ">", 8, badges)],
    }


REFUSED = (
    "the wrong definition", "another value", "too young", "text",
    "the revoked one alone",
)  # fmt: skip


@step
def world(faber):
    """Alice has a degree, a revoked badge of level 9 and badges of levels 7 and 5."""
    alice = faber.hosts()
    degree = faber.defines("name", "degree", "age")
    badge = faber.defines("Full Name", "level", supportRevocation=True)
    alice.receives(faber, degree, {"name": "Alice", "degree": "Maths", "age": "28"})
    for level in ("9", "7", "5"):
        alice.receives(faber, badge, {"Full Name": "Alice Liddell", "level": level})
    nine = faber.get("/credentials")[2]
    assert nine["values"]["level"] == "9"
    faber.delete(f"/credentials/{nine['credentialId']}")
    return alice, policies(faber, degree, badge)


@pytest.mark.parametrize("requirement", [None, {"validNow": True}])
def test_a_trial_says_what_a_wallet_and_the_verdict_say(faber, world, requirement):
    alice, wanted = world
    held = list(reversed(alice.get("/credentials")))
    for about, items in wanted.items():
        policy = policy_of(*items, revocationRequirement=requirement)
        tried = tried_with(faber, held, policy)
        asked = faber.asks(alice, **policy)
        seen = alice.newest("verifications")
        path = f"/verifications/{seen['verificationId']}"
        fitting = {
            one["policyName"]: {
                each["credentialId"] for each in one["availableCredentials"]
            }
            for one in alice.get(f"{path}/availableCredentials")
        }
        assert satisfying(tried, held) == fitting, about
        alice.put(f"{path}/autoSelect")
        verdict = faber.get(f"/verifications/{asked['verificationId']}")
        assert tried["satisfied"] is verdict["isValid"], about


@pytest.mark.parametrize("requirement", [None, {"validNow": True}])
def test_no_choice_makes_valid_what_a_trial_refuses(faber, world, requirement):
    alice, wanted = world
    held = list(reversed(alice.get("/credentials")))
    codes = set()
    for about in REFUSED:
        policy = policy_of(*wanted[about], revocationRequirement=requirement)
        tried = tried_with(faber, held, policy)
        [item] = tried["items"]
        for one in item["credentials"]:
            choice = {"policyName": item["policyName"]}
            choice["credentialId"] = held[one["credential"]]["credentialId"]
            is_valid = chosen(faber, alice, policy, choice)
            assert is_valid is one["satisfies"], (about, one)
            codes.add(one.get("code"))
    assert len(codes - {None}) == (6 if requirement else 5)


def tried_with(faber, held, policy):
    """The trial of a policy with samples like these credentials."""
    samples = [one | {"revoked": one["state"] == "Revoked"} for one in held]
    return faber.post("/verificationPolicies/try", policy | {"credentials": samples})


def satisfying(tried, held):
    """Item -> the ids of the credentials that satisfy it."""
    return {
        item["policyName"]: {
            held[one["credential"]]["credentialId"]
            for one in item["credentials"]
            if one["satisfies"]
        }
        for item in tried["items"]
    }


def chosen(faber, alice, policy, choice):
    """Return the verdict on this selection. False if the wallet refuses to send it."""
    asked = faber.asks(alice, **policy)
    seen = alice.newest("verifications")
    try:
        alice.put(f"/verifications/{seen['verificationId']}", [choice])
    except ApiError as error:
        assert error.status == 400
        return False
    return faber.get(f"/verifications/{asked['verificationId']}")["isValid"]
