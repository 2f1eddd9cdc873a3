"""Connecting, issuing and proving with an agent of somebody else, over HTTP."""

import base64
import json

from connections.didcomm import envelope, message
from connections.messaging import envelopes
from connections.models import Connection, OutboundMessage
from connections.protocols import connections_1_0, trust_ping
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_exchanges import (
    ISSUE,
    PROVE,
    VALUES,
    accepts_invitation_of,
    answers_request,
    invitation_of,
    offered_to,
    takes_offer,
)
from wallets import keys


def test_a_phone_connects(faber, any_phone):
    row = any_phone.connects(faber)
    connected = ("Connected", any_phone.verkey, "Phone")
    assert (row.state, row.their_key, row.name) == connected
    assert {one.prefix for one in any_phone.inbox} == {any_phone.prefix}
    assert not queues.pending().exists()


def test_a_phone_is_issued_a_credential_and_proves_it(faber, any_phone, client):
    definition, path = offered_to(any_phone, faber, automaticIssuance=True)
    credential = takes_offer(any_phone, client, definition["definitionId"])
    assert faber.get(path)["state"] == "Issued"
    connection_id = faber.get(path)["connectionId"]
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    asked = faber.post(f"/verifications/policy/connections/{connection_id}", policy)
    queues.sweep()
    thread = any_phone.newest(PROVE + "request-presentation").id
    answers_request(any_phone, client, credential)
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)
    assert result["proof"]["name"]["value"] == "Ann"
    assert any_phone.newest(PROVE + "ack").thread_id == thread
    assert {one.prefix for one in any_phone.inbox} == {any_phone.prefix}


def declines(phone, thread=None, version="1.0"):
    kind = f"issue-credential/{version}/problem-report"
    report = {"code": "issuance-abandoned", "en": "no"}
    phone.says(phone.build(kind, thread, description=report))


def test_a_phone_that_declines_makes_the_offer_rejected(faber, any_phone):
    _, path = offered_to(any_phone, faber)
    declines(any_phone, any_phone.newest(ISSUE + "offer-credential").id)
    assert faber.get(path)["state"] == "Rejected"
    assert Credential.objects.get().problem == "issuance-abandoned"


def test_a_decline_without_a_thread_is_of_the_only_open_offer(faber, any_phone):
    """As Credo sends it in version 1.0.

    An offer that was ended before does not count. Of two open ones, it is of neither.
    """
    definition, path = offered_to(any_phone, faber)
    declines(any_phone, "of-something-else")
    declines(any_phone, version="2.0")
    assert faber.get(path)["state"] == "Offered"
    declines(any_phone)
    assert faber.get(path)["state"] == "Rejected"
    offer = {
        "connectionId": faber.get(path)["connectionId"],
        "definitionId": definition["definitionId"],
        "credentialValues": VALUES,
    }
    ids = [faber.post("/credentials", offer)["credentialId"]]
    declines(any_phone)
    assert faber.get(f"/credentials/{ids[0]}")["state"] == "Rejected"
    ids = [faber.post("/credentials", offer)["credentialId"] for _ in range(2)]
    declines(any_phone)
    assert {faber.get(f"/credentials/{one}")["state"] for one in ids} == {"Offered"}


def test_alice_accepts_the_invitation_of_another_agent(alice, any_phone):
    path = f"/connections/{accepts_invitation_of(any_phone, alice)}"
    assert alice.get(path)["state"] == "Connected"
    assert alice.get(path)["theirKey"] == any_phone.verkey
    assert any_phone.newest(trust_ping.PING).sender == any_phone.their_key


def test_a_response_that_another_key_signed_connects_nobody(alice, phone):
    mine = alice.accepts_invitation(json.dumps(invitation_of(phone)))
    queues.sweep()
    asked = phone.newest(connections_1_0.REQUEST)
    phone.their_key = connections_1_0.read_request(asked).verkey
    phone.says(connections_1_0.build_response(phone.party, bytes(32), asked))
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Negotiating"


def test_an_answer_in_the_same_http_call_is_taken(row, phone):
    ping = phone.build(trust_ping.PING)
    phone.answers = phone.pack(ping)
    phone.says(phone.build(trust_ping.PING))
    phone.answers = b""
    queues.sweep()
    assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]


def test_an_answer_that_is_no_envelope_harms_nothing(row, phone, caplog):
    for answer in (b"OK", b"{}", b"\xff"):
        phone.answers = answer
        phone.says(phone.build(trust_ping.PING))
        assert not queues.pending().exists(), answer
    assert "Traceback" not in caplog.text


def test_a_message_that_the_endpoint_refuses_is_tried_again(row, phone, subtests):
    for number, status in enumerate((301, 404, 500), 1):
        phone.status = status
        phone.says(phone.build(trust_ping.PING))
        with subtests.test(status=status):
            left = queues.pending().get()
            assert (left.attempts, left.last_error) == (1, "endpoint_refused")
            phone.status = 202
            queues.worker_catches_up()
            done = OutboundMessage.objects.filter(connection=row, status="done")
            assert done.count() == 1 + number and not queues.pending().exists()


def test_an_endpoint_on_this_machine_is_refused_unless_allowed(row, phone, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = False
    phone.says(phone.build(trust_ping.PING))
    assert queues.pending().get().last_error == "address_refused"


def test_a_forward_is_wrapped_once_for_each_routing_key(row, phone):
    mediator = keys.generate_seed()
    behind = {"their_routing_keys": [keys.verkey_of(mediator)]}
    Connection.objects.filter(pk=row.pk).update(**behind)
    phone.post(phone.pack(phone.build(trust_ping.PING)))
    queues.tasks.process_some()
    data = envelopes.pack_message(queues.pending().get())
    opened = envelope.unpack(data, lambda kids: (kids[0], mediator))
    forward = message.parse(opened.body)
    assert opened.sender is None and forward.body["to"] == phone.verkey
    phone.receives(json.dumps(forward.body["msg"]).encode())
    assert phone.newest(trust_ping.PING_RESPONSE).sender == row.my_key.verkey


def test_an_invitation_reads_the_same_in_both_alphabets(faber):
    text = faber.invites(name="Größe ~ > ?")["invitation"]
    assert base64.b64decode(text) == base64.urlsafe_b64decode(text)
