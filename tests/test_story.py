"""The main job, from a wallet to a verified proof."""

import pytest

from connections.models import InboundMessage, OutboundMessage
from tests.support import queues
from webhooks.events.models import Event

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


VALUES = {"name": "Alice", "level": "7"}
# What the parties say in the story below, in order.
SAID = """
connections/1.0/request connections/1.0/response trust_ping/1.0/ping
issue-credential/1.0/offer-credential issue-credential/1.0/request-credential
issue-credential/1.0/issue-credential issue-credential/1.0/ack
issue-credential/1.0/offer-credential issue-credential/1.0/request-credential
issue-credential/1.0/issue-credential issue-credential/1.0/ack
present-proof/1.0/request-presentation present-proof/1.0/presentation
present-proof/1.0/ack
revocation_notification/1.0/revoke
present-proof/1.0/request-presentation present-proof/1.0/presentation
present-proof/1.0/problem-report
issue-credential/1.0/offer-credential issue-credential/1.0/problem-report
present-proof/1.0/request-presentation present-proof/1.0/problem-report
did-rotate/1.0/hangup
"""
# And their events.
HAPPENED = """
connection_invited connection_invited
connection_negotiating connection_negotiating connection_connected new_connection
credential_offered credential_offer credential_requested credential_request
credential_issued credential_issued
credential_offered credential_offer credential_requested credential_request
credential_issued credential_issued
verification_requested verification_request verification_accepted verification
verification_judged
credential_revoked credential_revoked
verification_requested verification_request verification_accepted verification
verification_judged
credential_offered credential_offer credential_rejected credential_rejected
verification_requested verification_request verification_rejected verification_rejected
connection_ended connection_ended
"""


def in_the_transaction(monkeypatch):
    """Messages between hosted wallets are handled in the transaction of the sender."""


@pytest.mark.parametrize("way", [in_the_transaction, queues.deliver_by_rows])
def test_the_same_story_happens_either_way(faber, monkeypatch, way):
    """The handlers are the same; messages to other agents are rows too."""
    way(monkeypatch)
    said, alice = queues.record_sent(monkeypatch), faber.hosts("Alice")
    assert alice.meets(faber)["state"] == "Connected"
    for is_revocable in (False, True):
        definition = faber.defines(*VALUES, supportRevocation=is_revocable)
        alice.receives(faber, definition, VALUES)
        assert newest(faber, alice, "credentials", "state") == ["Issued"] * 2
    proves(faber, alice, definition, is_valid=True)
    faber.delete(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    assert newest(faber, alice, "credentials", "state") == ["Revoked"] * 2
    proves(faber, alice, definition, is_valid=False)
    faber.offers(alice, definition, VALUES)
    alice.post(f"/credentials/{alice.newest('credentials')['credentialId']}/decline")
    assert newest(faber, alice, "credentials", "state") == ["Rejected"] * 2
    faber.asks(alice, attributes=[{"policyName": "level"}])
    path = f"/verifications/{alice.newest('verifications')['verificationId']}"
    alice.put(f"{path}/decline")
    assert newest(faber, alice, "verifications", "state") == ["Rejected"] * 2
    faber.post(f"/connections/{alice.known_as(faber)}/hangup")
    assert all(newest(faber, alice, "connections", "endedAtUtc"))
    assert said == SAID.split()
    events = Event.objects.order_by("transaction_id", "pk")
    assert list(events.values_list("type", flat=True)) == HAPPENED.split()
    by_rows = way is not in_the_transaction
    assert OutboundMessage.objects.count() == len(said) * by_rows
    assert InboundMessage.objects.count() == len(said) * by_rows
    assert not queues.pending().exists()


def newest(faber, alice, kind, name):
    """What both sides show of their newest object."""
    return [faber.get(f"/{kind}")[0][name], alice.newest(kind)[name]]


def proves(faber, alice, definition, is_valid):
    restriction = {"credentialDefinitionId": definition["definitionId"]}
    level = {"policyName": "level", "restrictions": [restriction]}
    faber.asks(alice, attributes=[level], revocationRequirement={"validNow": True})
    alice.auto_selects()
    assert newest(faber, alice, "verifications", "isValid") == [is_valid] * 2
