"""The main job, from a wallet to a verified proof, in each way of delivery."""

import pytest

from connections.models import InboundMessage, OutboundMessage
from tests.support import queues
from tests.support.presentations import attribute
from webhooks.events.models import Event

VALUES = {"name": "Alice", "level": "7"}
# What the parties say in the story below, in order: without versions, which follow
# what an agent elsewhere discloses.
SAID = """
connections/request connections/response trust_ping/ping
basicmessage/message basicmessage/message
issue-credential/offer-credential issue-credential/request-credential
issue-credential/issue-credential issue-credential/ack
issue-credential/offer-credential issue-credential/request-credential
issue-credential/issue-credential issue-credential/ack
present-proof/request-presentation present-proof/presentation present-proof/ack
revocation_notification/revoke
present-proof/request-presentation present-proof/presentation
present-proof/problem-report
issue-credential/offer-credential issue-credential/problem-report
present-proof/request-presentation present-proof/problem-report
did-rotate/hangup
"""
# The events of each. Between the two there is no order: by HTTP, the inviter is
# Connected before the invitee.
FABERS_EVENTS = """
connection_invited connection_negotiating new_connection
message_sent new_inbox_message
credential_offered credential_request credential_issued
credential_offered credential_request credential_issued
verification_requested verification
credential_revoked
verification_requested verification
credential_offered credential_rejected
verification_requested verification_rejected
connection_ended
"""
ALICES_EVENTS = """
connection_invited connection_negotiating connection_connected
new_inbox_message message_sent
credential_offer credential_requested credential_issued
credential_offer credential_requested credential_issued
verification_request verification_accepted verification_judged
credential_revoked
verification_request verification_accepted verification_judged
credential_offer credential_rejected
verification_request verification_rejected
connection_ended
"""
# What each of them sees at the end: of their credentials, the newest first, and so on.
CREDENTIALS = [("Rejected", VALUES), ("Revoked", VALUES), ("Issued", VALUES)]
VERIFICATIONS = [
    ("Rejected", None, None),
    ("Accepted", False, None),
    ("Accepted", True, "7"),
]


def in_the_transaction(monkeypatch):
    """Messages between hosted wallets are handled in the transaction of the sender."""


@pytest.mark.parametrize(
    "way", [in_the_transaction, queues.deliver_by_rows, queues.deliver_by_http]
)
def test_the_same_story_happens_each_way(
    faber, monkeypatch, settings, live_server, way
):
    """The handlers are the same for wallets hosted here and for agents elsewhere."""
    settings.PUBLIC_URL, settings.OUTGOING_ALLOW_LOOPBACK = live_server.url, True
    way(monkeypatch)
    said, alice = queues.record_handled(monkeypatch), faber.hosts("Alice")
    tell_the_story(faber, alice)
    assert [without_version(kind) for kind in said] == SAID.split()
    for party in (faber, alice):
        assert seen_by(party) == (CREDENTIALS, VERIFICATIONS, ["Hi", "Hello"])
    assert events_of_both() == [FABERS_EVENTS.split(), ALICES_EVENTS.split()]
    assert not queues.pending().exists()
    sent = OutboundMessage.objects.filter(is_hosted=way is not queues.deliver_by_http)
    for rows in (sent, InboundMessage.objects.all()):
        told = rows.exclude(type__startswith="discover-features/")
        assert told.count() == len(said) * (way is not in_the_transaction)


def tell_the_story(faber, alice):
    alice.meets(faber)
    assert newest(faber, alice, "connections", "state") == ["Connected"] * 2
    theirs, hers = alice.known[faber]
    faber.post("/messages", {"connectionId": theirs, "text": "Hello"})
    alice.post("/messages", {"connectionId": hers, "text": "Hi"})
    for is_revocable in (False, True):
        definition = faber.defines(*VALUES, supportRevocation=is_revocable)
        alice.receives(faber, definition, VALUES)
        assert newest(faber, alice, "credentials", "state") == ["Issued"] * 2
    proves(faber, alice, definition)
    faber.delete(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    assert newest(faber, alice, "credentials", "state") == ["Revoked"] * 2
    proves(faber, alice, definition)
    faber.offers(alice, definition, VALUES)
    alice.post(f"/credentials/{alice.newest('credentials')['credentialId']}/decline")
    faber.asks(alice, attributes=[{"policyName": "level"}])
    path = f"/verifications/{alice.newest('verifications')['verificationId']}"
    alice.put(f"{path}/decline")
    faber.post(f"/connections/{theirs}/hangup")
    assert all(newest(faber, alice, "connections", "endedAtUtc"))


def proves(faber, alice, definition):
    level = attribute("level", {"credentialDefinitionId": definition["definitionId"]})
    faber.asks(alice, attributes=[level], revocationRequirement={"validNow": True})
    alice.auto_selects()


def newest(faber, alice, kind, name):
    """What both sides show of their newest object."""
    return [faber.get(f"/{kind}")[0][name], alice.newest(kind)[name]]


def seen_by(party):
    """What a party sees of the whole story."""
    [connection] = party.get("/connections")
    texts = party.get(f"/messages/connection/{connection['connectionId']}")
    return (
        [(one["state"], one["values"]) for one in party.get("/credentials")],
        [
            (one["state"], one.get("isValid"), proven_level(one))
            for one in party.get("/verifications")
        ],
        [one["text"] for one in texts],
    )


def proven_level(verification):
    return verification.get("proof", {}).get("level", {}).get("value")


def events_of_both():
    """The types of the organization's events, and of those of the hosted wallet."""
    events = list(Event.objects.order_by("transaction_id", "pk"))
    return [
        [one.type for one in events if ("wallet_id" in one.body) == is_hosted]
        for is_hosted in (False, True)
    ]


def without_version(kind):
    protocol, _, name = kind.split("/")
    return f"{protocol}/{name}"
