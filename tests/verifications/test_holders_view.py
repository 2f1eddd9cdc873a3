"""The `proof` on the holder's side: what it has shown, whatever the verifier made of it."""

import pytest

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


def shown(holder):
    return holder.newest("verifications")["proof"]


def test_a_request_shows_nothing_yet(faber, alice):
    faber.asks(alice, **POLICY)
    assert "proof" not in alice.newest("verifications")


def test_both_sides_see_what_was_shown(faber, alice):
    asked = faber.asks(alice, **POLICY)
    alice.auto_selects()
    assert shown(alice) == faber.get(f"/verifications/{asked['verificationId']}")["proof"]
    assert shown(alice)["Name"]["value"] == "Alice"


def test_a_hidden_value_is_not_among_it(faber, alice):
    faber.asks(alice, **POLICY)
    held = alice.newest("credentials")["credentialId"]
    chosen = [
        {"policyName": "Name", "credentialId": held, "hidden": True},
        {"policyName": "Of age", "credentialId": held},
    ]
    alice.put(f"/verifications/{alice.newest('verifications')['verificationId']}", chosen)
    assert shown(alice)["Name"] == {"name": "name", "conditional": False} | NOT_SHOWN


def test_an_item_without_an_answer_has_no_value(faber, alice):
    stranger = faber.hosts("Bob")
    faber.asks(stranger, **POLICY)
    stranger.auto_selects()
    assert shown(stranger)["Name"] == {"name": "name", "conditional": False} | NOT_SHOWN
    assert shown(stranger)["Of age"]["value"] == "false"
