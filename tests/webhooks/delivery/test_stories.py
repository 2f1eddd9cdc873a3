"""Whole stories, as receivers are told of them: an exact list of calls, none twice."""

import json

import pytest

from connections.models import BasicMessage, Connection
from connections.protocols import basic_message
from credentials.models import Credential
from tests.support.outside_agent import Agent, listening
from tests.support.webhook_receiver import worker_calls
from verifications.models import Verification
from verifications.present_proof import verifier
from webhooks.events.types import Type
from webhooks.models import Delivery, Event

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Zenobia Quillfeather", "degree": "Maths"}
ASKED = {"attributes": [{"policyName": "name"}]}


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
        "wallet": alice.wallet_id,
        "connection": alice.known[faber][0],
        "hers": alice.known[faber][1],
        "credential": offered["credentialId"],
        "held": held,
        "verification": asked["verificationId"],
        "seen": seen,
        "message": str(BasicMessage.objects.get(direction="Incoming").pk),
    }


def test_a_receiver_of_the_original_clients_is_told_exactly_this(
    faber, receiver, registers
):
    registers()
    ids = story(faber)
    worker_calls()
    assert sorted(receiver.events) == sorted(
        [
            ("new_connection", ids["connection"]),
            ("credential_offer", ids["held"]),
            ("credential_request", ids["credential"]),
            ("verification_request", ids["seen"]),
            ("verification", ids["verification"]),
            ("new_inbox_message", ids["message"]),
        ]
    )
    assert_every_generation_can_read(receiver.calls, ids)


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
        },
        "state": "Requested",
    }
    mine = bodies["new_connection"]
    assert (
        mine["object_id"]
        == mine["data"]["connection_id"]
        == mine["data"]["ConnectionId"]
    )
    hers = bodies["credential_offer"]["data"]
    assert (hers["WalletId"], hers["wallet_id"]) == (ids["wallet"], ids["wallet"])
    assert (hers["ConnectionId"], hers["connection_id"]) == (ids["hers"], ids["hers"])
    assert {call.headers["content-type"] for call in calls} == {"application/json"}


def test_a_receiver_in_the_interfaces_dialect_is_told_its_four_types(
    faber, receiver, registers
):
    faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
    registers()
    del faber.headers["X-Service-Subscription-Key"]
    ids = story(faber)
    worker_calls()
    assert sorted(receiver.events) == sorted(
        [
            ("new_connection", ids["connection"]),
            ("credential_request", ids["credential"]),
            ("verification", ids["verification"]),
            ("new_inbox_message", ids["message"]),
        ]
    )


def test_a_receiver_that_asks_for_all_is_told_every_step_once(
    faber, receiver, registers
):
    registers(messageTypes=[str(kind) for kind in Type])
    ids = story(faber)
    worker_calls()
    calls_by_object = {}
    for call in receiver.calls:
        calls_by_object.setdefault(call.body["object_id"], []).append(
            (call.body["sequence"], call.type)
        )
    assert calls_by_object.pop(ids["connection"]) == steps(
        "connection_invited", "connection_negotiating", "new_connection"
    )
    assert calls_by_object.pop(ids["hers"]) == steps(
        "connection_invited", "connection_negotiating", "connection_connected"
    )
    assert calls_by_object.pop(ids["credential"]) == steps(
        "credential_offered", "credential_request", "credential_issued"
    )
    assert calls_by_object.pop(ids["held"]) == steps(
        "credential_offer", "credential_requested", "credential_issued"
    )
    assert calls_by_object.pop(ids["verification"]) == steps(
        "verification_requested", "verification"
    )
    assert calls_by_object.pop(ids["seen"]) == steps(
        "verification_request", "verification_accepted", "verification_judged"
    )
    assert calls_by_object.pop(ids["message"]) == steps("new_inbox_message")
    assert list(calls_by_object.values()) == [steps("message_sent")]
    bodies = "".join(Event.objects.values_list("body", flat=True))
    assert not [word for word in ("Zenobia", "Maths", "Hello") if word in bodies], (
        "of no value"
    )


def steps(*types):
    return list(enumerate(types, 1))


def test_a_handler_that_reads_the_object_sees_the_new_state(
    faber,
    receiver,
    registers,
):
    """As the original handlers do: each reads, in the call, what the call is about."""
    registers()
    read = {
        "new_connection": lambda body: faber.get(f"/connections/{body['object_id']}")[
            "state"
        ],
        "credential_request": lambda body: faber.get(
            f"/credentials/{body['object_id']}"
        )["state"],
        "verification": lambda body: verdict(
            faber.get(f"/verifications/{body['object_id']}")
        ),
        "new_inbox_message": lambda body: faber.get(f"/messages/{body['object_id']}")[
            "text"
        ],
        "credential_offer": lambda body: hers(faber, "credentials", body)["state"],
        "verification_request": lambda body: hers(faber, "verifications", body)[
            "state"
        ],
    }
    seen = {}
    receiver.meet = lambda call: seen.update({call.type: read[call.type](call.body)})
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
    writes(alice, "Hello")
    worker_calls()
    assert seen == {
        "new_connection": "Connected",
        "credential_offer": "Offered",
        "credential_request": "Requested",
        "verification_request": "Requested",
        "verification": ("Accepted", True, VALUES["name"]),
        "new_inbox_message": "Hello",
    }


def writes(holder, text):
    """The holder's side writes; no operation of the API does this for a wallet."""
    basic_message.send_text(
        Connection.objects.get(wallet__wallet_id=holder.wallet_id), text
    )


def verdict(read):
    return read["state"], read["isValid"], read["proof"]["name"]["value"]


def hers(faber, kind, body):
    return faber.get(f"/api/{body['data']['WalletId']}/{kind}/{body['object_id']}")


def test_each_connection_of_a_multi_party_invitation_is_told(
    faber, receiver, registers
):
    registers()
    invited = faber.invites(multiParty=True)
    for name in ("Alice", "Bob"):
        faber.hosts(name).accepts_invitation(invited["invitation"])
    worker_calls()
    spawned = Connection.objects.filter(role="inviter", state="Connected")
    ids = sorted(spawned.values_list("connection_id", flat=True))
    assert sorted(receiver.events) == [("new_connection", name) for name in ids]


def test_a_connectionless_exchange_names_no_connection(
    faber, acme, receiver, registers
):
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
    threads = [
        Credential.objects.get(role="issuer").thread_id,
        Verification.objects.get(role="verifier").thread_id,
    ]
    assert [call.body["data"] for call in receiver.calls] == [
        {"thread_id": thread_id} for thread_id in threads
    ]


def test_each_organization_is_told_of_its_own_only(faber, acme, receiver, registers):
    registers()
    alice = acme.hosts("Alice")
    alice.meets(acme)
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
    alice.put(
        f"/verifications/{alice.newest('verifications')['verificationId']}/decline"
    )
    worker_calls()
    assert ("credential_rejected", offered["credentialId"]) in receiver.events
    assert ("verification_rejected", asked["verificationId"]) in receiver.events
    assert len(receiver.calls) == 4, "each side has a row of its own"


def test_a_revocation_is_told_to_those_who_ask(faber, receiver, registers):
    registers(messageTypes=["credential_revoked"])
    alice = faber.hosts("Alice")
    definition = faber.defines("name", "level", supportRevocation=True)
    alice.receives(faber, definition, {"name": "A", "level": "1"})
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
    alice = faber.hosts("Alice")
    alice.receives(faber, faber.defines("name", "degree"), VALUES)
    proposal = {"name": "P", "version": "1.0", **ASKED}
    alice.put(f"/verifications/propose/{alice.known[faber][1]}", proposal)
    worker_calls()
    assert receiver.types == ["verification_proposed"] * 2
    row = Verification.objects.get(role="verifier")
    verifier.answer_proposal(row)
    alice.auto_selects()
    worker_calls()
    assert receiver.types[2:] == ["verification_judged"]


def test_a_proposed_credential_is_told_to_who_asks_for_it(faber, receiver, registers):
    registers(messageTypes=["credential_proposed"])
    registers()
    alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
    alice.meets(faber)
    worker_calls()
    receiver.calls.clear()
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    alice.put(f"/credentials/propose/{alice.known[faber][1]}", body)
    worker_calls()
    assert receiver.types == ["credential_proposed"] * 2
    assert {one.body["state"] for one in receiver.calls} == {"Proposed"}
    assert "Maths" not in str([one.body for one in receiver.calls])
