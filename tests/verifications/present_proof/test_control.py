"""What a controller chooses for a proof request, over HTTP."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support import queues
from tests.support.people import ApiError

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "level": "7"}


def moment(**before):
    return (datetime.now(UTC) - timedelta(**before)).isoformat()


def test_an_interval_and_a_moment_of_an_item_are_asked_for(faber):
    alice = faber.hosts()
    definition = faber.defines("name", "level", supportRevocation=True)
    queues.sweep()
    alice.receives(faber, definition, VALUES)
    asked = faber.asks(
        alice,
        attributes=[
            {
                "policyName": "name",
                "revocationRequirement": {"validAt": moment(seconds=0)},
            },
            {"policyName": "level"},
        ],
        revocationRequirement={"validFrom": moment(days=1), "validNow": True},
    )
    policy = asked["policy"]
    assert policy["revocationRequirement"].keys() == {"validFrom", "validNow"}
    assert "validAt" in policy["attributes"][0]["revocationRequirement"]
    alice.auto_selects()
    seen = faber.get(f"/verifications/{asked['verificationId']}")
    assert seen["isValid"] is True, seen["checks"]


def test_a_moment_to_come_is_refused_by_name(faber):
    alice = faber.hosts()
    item = {
        "policyName": "name",
        "revocationRequirement": {"validAt": moment(days=-1)},
    }
    with pytest.raises(ApiError) as refused:
        faber.asks(alice, attributes=[item])
    assert (refused.value.status, refused.value.code) == (400, "not_yet_due")
    assert list(refused.value.body["errors"]) == [
        "attributes[0].revocationRequirement.validAt"
    ]
