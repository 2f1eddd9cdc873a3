"""Connecting, issuing and proving with an agent of somebody else, over HTTP."""

import base64
import json

import pytest

from connections.didcomm import envelope, message
from connections.messaging import envelopes
from connections.models import Connection, OutboundMessage
from connections.protocols import connections_1_0, trust_ping
from tests.support import queues
from tests.support.outside_exchanges import (
    ISSUE,
    PROVE,
    VALUES,
    answers_request,
    invitation_of,
    offered_to,
    takes_offer,
)
from wallets import keys


def test_a_phone_connects(faber, any_phone):
    row = any_phone.connects(faber)
    assert (row.state, row.their_key, row.name) == (
        "Connected",
        any_phone.verkey,
        "Phone",
    )
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
    answers_request(any_phone, client, credential)
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)
    assert result["proof"]["name"]["value"] == "Ann"
    assert any_phone.newest(PROVE + "ack").thread_id == answered_thread(any_phone)
    assert {one.prefix for one in any_phone.inbox} == {any_phone.prefix}


def answered_thread(phone):
    [asked] = [
        one for one in phone.inbox if one.type == PROVE + "request-presentation"
    ]
    return asked.id


def test_a_phone_that_declines_makes_the_offer_rejected(faber, any_phone):
    _, path = offered_to(any_phone, faber)
    thread = any_phone.newest(ISSUE + "offer-credential").id
    report = {"description": {"code": "issuance-abandoned", "en": "no"}}
    any_phone.says(any_phone.build(ISSUE + "problem-report", thread, **report))
    assert faber.get(path)["state"] == "Rejected"


def test_a_decline_without_a_thread_is_of_the_only_open_offer(faber, any_phone):
    """As Credo sends it in version 1.0.

    An offer that was ended before does not count.
    """
    definition, path = offered_to(any_phone, faber)
    report = {"description": {"code": "issuance-abandoned", "en": "no"}}
    any_phone.says(any_phone.build(ISSUE + "problem-report", **report))
    assert faber.get(path)["state"] == "Rejected"
    path = offers_again(any_phone, faber, path, definition)
    any_phone.says(any_phone.build(ISSUE + "problem-report", **report))
    assert faber.get(path)["state"] == "Rejected"


def test_a_decline_without_a_thread_is_of_nothing_where_it_may_be_of_two(
    faber, any_phone
):
    definition, first = offered_to(any_phone, faber)
    paths = first, offers_again(any_phone, faber, first, definition)
    report = {"description": {"code": "issuance-abandoned", "en": "no"}}
    any_phone.says(any_phone.build(ISSUE + "problem-report", **report))
    assert {faber.get(path)["state"] for path in paths} == {"Offered"}


@pytest.mark.parametrize(
    "version, thread", [("2.0", None), ("1.0", "of-something-else")]
)
def test_only_a_report_of_version_1_without_a_thread_is_guessed_at(
    faber, any_phone, version, thread
):
    _, path = offered_to(any_phone, faber)
    kind = f"issue-credential/{version}/problem-report"
    any_phone.says(any_phone.build(kind, thread, description={"code": "x"}))
    assert faber.get(path)["state"] == "Offered"


def offers_again(phone, faber, path, definition):
    body = {
        "connectionId": faber.get(path)["connectionId"],
        "credentialValues": VALUES,
    }
    offered = faber.post(
        "/credentials", body | {"definitionId": definition["definitionId"]}
    )
    queues.sweep()
    return f"/credentials/{offered['credentialId']}"


def test_a_phone_without_an_ack_is_connected_when_the_answer_reached_it(faber, phone):
    invited = faber.invites()
    row = Connection.objects.get(connection_id=invited["connectionId"])
    phone.requests(row.invitation)
    assert phone.newest(connections_1_0.RESPONSE)
    assert faber.get(f"/connections/{invited['connectionId']}")["state"] == "Connected"


def test_a_second_phone_is_told_that_the_invitation_was_used(faber, phone):
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    faber.hosts("Alice").accepts_invitation(message.encode_url(row.invitation))
    phone.requests(row.invitation)
    assert (
        phone.newest(connections_1_0.PROBLEM).body["problem-code"]
        == "request_not_accepted"
    )


def test_alice_accepts_the_invitation_of_another_agent(faber, any_phone):
    alice = faber.hosts("Alice")
    mine = alice.accepts_invitation(json.dumps(invitation_of(any_phone)))
    assert mine["state"] == "Negotiating"
    queues.sweep()
    asked = any_phone.newest(connections_1_0.REQUEST)
    any_phone.their_key = connections_1_0.read_party(asked.body["connection"]).verkey
    any_phone.says(
        connections_1_0.build_response(any_phone.party, any_phone.seed, asked)
    )
    path = f"/connections/{mine['connectionId']}"
    assert alice.get(path)["state"] == "Connected"
    assert alice.get(path)["theirKey"] == any_phone.verkey
    assert any_phone.newest(trust_ping.PING).sender == any_phone.their_key


def test_a_response_that_another_key_signed_connects_nobody(faber, phone):
    alice = faber.hosts("Alice")
    mine = alice.accepts_invitation(json.dumps(invitation_of(phone)))
    queues.sweep()
    asked = phone.newest(connections_1_0.REQUEST)
    phone.their_key = connections_1_0.read_party(asked.body["connection"]).verkey
    phone.says(connections_1_0.build_response(phone.party, bytes(32), asked))
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Negotiating"


def test_an_answer_in_the_same_http_call_is_taken(faber, phone):
    row = phone.connects(faber)
    ping = phone.build(trust_ping.PING)
    phone.answers = phone.pack(ping)
    phone.says(phone.build(trust_ping.PING))
    phone.answers = b""
    queues.sweep()
    assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]
    assert row.state == "Connected"


@pytest.mark.parametrize("answer", [b"OK", b"<html></html>", b"{}", b"\xff"])
def test_an_answer_that_is_no_envelope_harms_nothing(faber, phone, caplog, answer):
    phone.answers = answer
    phone.connects(faber)
    assert not queues.pending().exists()
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("status", [301, 400, 404, 500])
def test_a_message_that_the_endpoint_refuses_is_tried_again(faber, phone, status):
    row = phone.connects(faber)
    phone.status = status
    phone.says(phone.build(trust_ping.PING))
    left = queues.pending().get()
    assert (left.attempts, left.last_error) == (1, "endpoint_refused")
    phone.status = 202
    queues.worker_catches_up()
    assert not queues.pending().exists()
    assert OutboundMessage.objects.filter(connection=row, status="done").count() == 2


def test_an_endpoint_on_this_machine_is_refused_unless_it_is_allowed(
    faber, phone, settings
):
    phone.connects(faber)
    settings.OUTGOING_ALLOW_LOOPBACK = False
    phone.says(phone.build(trust_ping.PING))
    assert queues.pending().get().last_error == "address_refused"


def test_a_forward_is_wrapped_once_for_each_routing_key(faber, phone):
    row = phone.connects(faber)
    mediator = keys.generate_seed()
    Connection.objects.filter(pk=row.pk).update(
        their_routing_keys=[keys.verkey_of(mediator)]
    )
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
