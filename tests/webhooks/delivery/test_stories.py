"""Whole stories, as receivers are told of them: an exact list of calls, none twice."""

import json

import pytest

from connections.models import BasicMessage, Connection
from connections.protocols import basic_message
from credentials.models import Credential
from tests.support.outside_agent import Agent, listening
from tests.support.webhook_receiver import receiving, worker_calls
from verifications.models import Verification
from verifications.present_proof import verifier
from webhooks.events.types import Type
from webhooks.models import Delivery, Event

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Zenobia Quillfeather", "degree": "Maths"}
ASKED = {"attributes": [{"policyName": "name"}]}
STEPS = (
    "connection", "hers", "credential", "held", "verification", "seen", "message",
)  # fmt: skip


def story(faber):
    """Faber and Alice, one organization: connection, credential, proof, messages."""
    alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
    alice.meets(faber)
    offered = faber.offers(alice, definition, VALUES)
    held = alice.accepts_offer()
    faber.put(f"/credentials/{offered['credentialId']}")
    asked = faber.asks(alice, **ASKED)
    seen = alice.auto_selects()
    text = {"connectionId": alice.known_as(faber), "text": "Hello"}
    faber.post("/messages", text)
    return {
        "wallet": alice.wallet_id, "connection": alice.known[faber][0],
        "hers": alice.known[faber][1], "credential": offered["credentialId"],
        "held": held, "verification": asked["verificationId"], "seen": seen,
        "message": str(BasicMessage.objects.get(direction="Incoming").pk),
    }  # fmt: skip


def test_a_receiver_of_each_kind_is_told_exactly_this(faber, receiver, registers):
    """One of the original clients, one in the interface's dialect, one that asks."""
    registers()
    with receiving() as literal, receiving() as curious:
        faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
        registers(url=literal.url)
        del faber.headers["X-Service-Subscription-Key"]
        registers(url=curious.url, messageTypes=[str(kind) for kind in Type])
        ids = story(faber)
        worker_calls()
    told = [
        ("new_connection", ids["connection"]),
        ("credential_request", ids["credential"]),
        ("verification", ids["verification"]),
        ("new_inbox_message", ids["message"]),
    ]
    assert sorted(literal.events) == sorted(told)
    told += [("credential_offer", ids["held"]), ("verification_request", ids["seen"])]
    assert sorted(receiver.events) == sorted(told)
    assert_every_generation_can_read(receiver.calls, ids)
    assert_told_every_step_once(curious.calls, ids)
    bodies = "".join(Event.objects.values_list("body", flat=True))
    words = ("Zenobia", "Maths", "Hello")
    assert not [word for word in words if word in bodies], "of no value"


def assert_every_generation_can_read(calls, ids):
    bodies = {call.type: call.body for call in calls}
    assert bodies["credential_request"] == {
        "message_type": "credential_request",
        "object_id": ids["credential"],
        "object_type": "credential",
        "event_id": str(Event.objects.get(type="credential_request").pk),
        "sequence": 2,
        "created_at": bodies["credential_request"]["created_at"],
        "data": {
            "connection_id": ids["connection"],
            "ConnectionId": ids["connection"],
            "thread_id": Credential.objects.get(pk=ids["credential"]).thread_id,
            "format": "anoncreds",
        },
        "state": "Requested",
    }
    data = bodies["new_connection"]["data"]
    assert bodies["new_connection"]["object_id"] == ids["connection"]
    assert data["connection_id"] == data["ConnectionId"] == ids["connection"]
    hers = bodies["credential_offer"]["data"]
    assert (hers["WalletId"], hers["wallet_id"]) == (ids["wallet"], ids["wallet"])
    assert (hers["ConnectionId"], hers["connection_id"]) == (ids["hers"], ids["hers"])
    assert {call.headers["content-type"] for call in calls} == {"application/json"}


def assert_told_every_step_once(calls, ids):
    steps = {}
    for call in calls:
        told = steps.setdefault(call.body["object_id"], [])
        told.append(call.type)
        assert call.body["sequence"] == len(told)
    invited = ["connection_invited", "connection_negotiating"]
    assert [steps.pop(ids[name]) for name in STEPS] == [
        [*invited, "new_connection"],
        [*invited, "connection_connected"],
        ["credential_offered", "credential_request", "credential_issued"],
        ["credential_offer", "credential_requested", "credential_issued"],
        ["verification_requested", "verification"],
        ["verification_request", "verification_accepted", "verification_judged"],
        ["new_inbox_message"],
    ]
    assert list(steps.values()) == [["message_sent"]]


PLACES = {
    "new_connection": "connections", "credential_request": "credentials",
    "verification": "verifications", "new_inbox_message": "messages",
    "credential_offer": "credentials", "verification_request": "verifications",
}  # fmt: skip


@pytest.fixture
def seen(faber, receiver):
    """What the receiver of each type reads, in the call, where its body says."""
    seen = {}

    def reads(call):
        wallet = call.body["data"].get("WalletId")
        prefix = f"/api/{wallet}" if wallet else ""
        path = f"{prefix}/{PLACES[call.type]}/{call.body['object_id']}"
        seen[call.type] = faber.get(path)

    receiver.meet = reads
    return seen


def test_a_handler_that_reads_the_object_sees_the_new_state(faber, registers, seen):
    """As the original handlers do."""
    registers()
    alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
    alice.meets(faber)
    faber.offers(alice, definition, VALUES)
    worker_calls()
    alice.accepts_offer()
    worker_calls()
    faber.put(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    faber.asks(alice, **ASKED)
    worker_calls()
    alice.auto_selects()
    mine = {"connectionId": alice.known[faber][1], "text": "Hello"}
    alice.post("/messages", mine)
    worker_calls()
    assert seen.pop("new_inbox_message")["text"] == "Hello"
    proof = seen["verification"]
    assert proof["isValid"] and proof["proof"]["name"]["value"] == VALUES["name"]
    assert {kind: one["state"] for kind, one in seen.items()} == {
        "new_connection": "Connected",
        "credential_offer": "Offered",
        "credential_request": "Requested",
        "verification_request": "Requested",
        "verification": "Accepted",
    }


def test_each_connection_of_an_invitation_for_many_is_told(faber, receiver, registers):
    registers()
    invited = faber.invites(multiParty=True)
    for name in ("Alice", "Bob"):
        faber.hosts(name).accepts_invitation(invited["invitation"])
    worker_calls()
    spawned = Connection.objects.filter(role="inviter", state="Connected")
    ids = sorted(spawned.values_list("connection_id", flat=True))
    assert sorted(receiver.events) == [("new_connection", name) for name in ids]


def test_an_exchange_by_link_names_no_connection(faber, acme, receiver, registers):
    registers()
    definition, alice = faber.defines("name", "degree"), acme.hosts("Alice")
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    offered = faber.post("/credentials", body | {"automaticIssuance": True})
    alice.put_form("/credentials/fromData", credentialData=offered["offerData"])
    policy = {"name": "P", "version": "1.0", **ASKED}
    asked = faber.post("/verifications/policy", policy)
    data = asked["verificationRequestData"]
    alice.put_form("/verifications/fromData/autoSelect", verificationData=data)
    worker_calls()
    assert receiver.events == [
        ("credential_request", offered["credentialId"]),
        ("verification", asked["verificationId"]),
    ]
    rows = (
        Credential.objects.get(role="issuer"),
        Verification.objects.get(role="verifier"),
    )
    told = [call.body["data"] for call in receiver.calls]
    assert [data["thread_id"] for data in told] == [row.thread_id for row in rows]
    assert [data.get("connection_id") for data in told] == [None, None]


def test_each_organization_is_told_of_its_own_only(faber, acme, receiver, registers):
    registers()
    alice = acme.hosts("Alice")
    acme.offers(alice, acme.defines("name", "degree"), VALUES)
    worker_calls()
    assert receiver.calls == [] and not Delivery.objects.exists()
    alice.meets(faber)
    worker_calls()
    assert receiver.types == ["new_connection"]


def test_who_declines_is_told_to_those_who_ask(faber, receiver, registers):
    registers(messageTypes=["credential_rejected", "verification_rejected"])
    alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
    offered = faber.offers(alice, definition, VALUES)
    asked = faber.asks(alice, **ASKED)
    alice.post(f"/credentials/{alice.newest('credentials')['credentialId']}/decline")
    mine = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{mine}/decline")
    worker_calls()
    assert ("credential_rejected", offered["credentialId"]) in receiver.events
    assert ("verification_rejected", asked["verificationId"]) in receiver.events
    assert len(receiver.calls) == 4, "each side has a row of its own"


def test_a_revocation_is_told_to_those_who_ask(faber, receiver, registers):
    registers(messageTypes=["credential_revoked"])
    definition = faber.defines("name", "level", supportRevocation=True)
    faber.hosts().receives(faber, definition, {"name": "A", "level": "1"})
    [issued] = faber.get("/credentials")
    faber.delete(f"/credentials/{issued['credentialId']}")
    worker_calls()
    ids = {str(row.pk) for row in Credential.objects.filter(state="Revoked")}
    assert {name for _, name in receiver.events} == ids and len(ids) == 2


def test_what_another_agent_does_is_told_too(faber, receiver, registers):
    registers()
    with listening(Agent()) as phone:
        phone.connects(faber)
        phone.says(phone.build(basic_message.MESSAGE, content="Ahoy"))
    worker_calls()
    assert receiver.types == ["new_connection", "new_inbox_message"]


def test_deliveries_are_json_of_ascii(faber, receiver, registers):
    registers()
    faber.invites(connectionId="office@1", name="Büro")
    faber.hosts("Ädam").accepts_invitation(
        faber.get("/connections/office@1")["invitation"]
    )
    worker_calls()
    [call] = receiver.calls
    assert call.data == json.dumps(json.loads(call.data)).encode()
    assert call.body["object_id"] == "office@1"


def test_what_is_proposed_and_judged_is_told(faber, receiver, registers):
    registers(messageTypes=["verification_proposed", "verification_judged"])
    with receiving() as other:
        registers(messageTypes=["credential_proposed"], url=other.url)
        alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
        alice.receives(faber, definition, VALUES)
        mine = alice.known[faber][1]
        proposal = {"name": "P", "version": "1.0", **ASKED}
        alice.put(f"/verifications/propose/{mine}", proposal)
        body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
        alice.put(f"/credentials/propose/{mine}", body)
        worker_calls()
    assert receiver.types == ["verification_proposed"] * 2
    assert other.types == ["credential_proposed"] * 2
    assert {one.body["state"] for one in other.calls} == {"Proposed"}
    assert "Maths" not in str([one.body for one in other.calls])
    verifier.answer_proposal(Verification.objects.get(role="verifier"))
    alice.auto_selects()
    worker_calls()
    assert receiver.types[2:] == ["verification_judged"]
