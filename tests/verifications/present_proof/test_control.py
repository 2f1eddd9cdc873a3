"""What a controller chooses for a proof request, over HTTP."""

from datetime import UTC, datetime, timedelta

from tests.support import queues
from tests.support.errors import assert_error, error_of

VALUES = {"name": "Alice", "level": "7"}


def moment(**before):
    return (datetime.now(UTC) - timedelta(**before)).isoformat()


def name_at(time):
    """The item of the name, with a moment of its own."""
    return {"policyName": "name", "revocationRequirement": {"validAt": time}}


def test_an_interval_and_a_moment_of_an_item_are_asked_for(faber):
    alice = faber.hosts()
    definition = faber.defines("name", "level", supportRevocation=True)
    queues.sweep()
    alice.receives(faber, definition, VALUES)
    requirement = {"validFrom": moment(days=1), "validNow": True}
    items = [name_at(moment(seconds=0)), {"policyName": "level"}]
    asked = faber.asks(alice, attributes=items, revocationRequirement=requirement)
    policy = asked["policy"]
    assert policy["revocationRequirement"].keys() == {"validFrom", "validNow"}
    assert "validAt" in policy["attributes"][0]["revocationRequirement"]
    alice.auto_selects()
    seen = faber.get(f"/verifications/{asked['verificationId']}")
    assert seen["isValid"] is True, seen["checks"]


def test_a_moment_to_come_is_refused_by_name(faber):
    items = [name_at(moment(days=-1))]
    error = error_of(faber.asks, faber.hosts(), attributes=items)
    assert_error(error, 400, "not_yet_due")
    named = "attributes[0].revocationRequirement.validAt"
    assert list(error.body["errors"]) == [named]


def test_both_sides_read_the_cause_of_a_verdict_once(faber):
    alice = faber.hosts()
    alice.meets(faber)
    items = [{"policyName": "name"}, {"policyName": "level"}]
    asked = faber.asks(alice, attributes=items)
    alice.auto_selects()
    [cause] = faber.get(f"/verifications/{asked['verificationId']}")["causes"]
    assert (cause["code"], cause["policyNames"]) == ("no_card", ["name", "level"])
    told = alice.newest("verifications")
    assert (told["isValid"], told["problem"]) == (False, cause["code"])
    assert told["problemMessage"] == cause["message"] == "No card that proves this."
    assert "causes" not in told
