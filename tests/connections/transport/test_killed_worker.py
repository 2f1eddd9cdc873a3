"""A worker is killed during an exchange with another agent. The next one continues."""

import signal

import pytest

from connections.didcomm import dids
from connections.didcomm.message import json_attachment, read_attachment
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import connections_1_0, did_exchange, discover_features
from credentials.models import Credential
from tests.support import queues
from tests.support.killed_worker import FAULT_POINTS, die_and_recover, killed_worker
from tests.support.outside_exchanges import (
    ISSUE,
    LINK_SECRET,
    VALUES,
    ids_of_messages,
    ledger_object,
)
from verifications.models import Verification
from wallets import anoncreds
from wallets.models import Key

ROWS = (Connection, Credential, Verification, Key, OutboundMessage)
pytestmark = pytest.mark.slow


def everything():
    return {model: list(model.objects.order_by("pk").values()) for model in ROWS}


@pytest.mark.parametrize("fault", FAULT_POINTS)
def test_a_connection_is_made_though_a_worker_dies(faber, phone, fault):
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    request = connections_1_0.build_request("Phone", "", phone.party, phone.prefix)
    phone.post(phone.pack(request, row.invitation["recipientKeys"][0]))
    die_and_recover(fault)
    row.refresh_from_db()
    assert (row.state, row.their_key) == ("Connected", phone.verkey)
    assert len(ids_of_messages(phone, connections_1_0.RESPONSE)) == 1, (
        "sent again it is the same message"
    )


def asked_by_did_exchange(phone, parent):
    return did_exchange.build_request(
        "1.1", "Phone", phone.party, phone.seed, phone.prefix, parent
    )


def test_a_did_exchange_is_completed_though_a_worker_dies(faber, phone):
    faber.invites(protocol="out-of-band", handshakes=["didexchange/1.1"])
    row = Connection.objects.get()
    signer, parent = row.invitation_key.verkey, row.invitation["@id"]
    phone.post(phone.pack(asked_by_did_exchange(phone, parent), signer))
    die_and_recover("after_message_before_mark")
    answered = phone.inbox[-1]
    phone.their_key = did_exchange.read_response(answered, signer).verkey
    given = ("1.1", answered.thread_id, phone.prefix, parent)
    phone.post(phone.pack(did_exchange.build_complete(*given)))
    die_and_recover("inside_handling")
    row.refresh_from_db()
    assert row.state == "Connected"


def test_a_peer_is_asked_what_it_speaks_though_a_worker_dies(faber, phone):
    """Once before the question is marked as sent, once while the answer is handled."""
    row = phone.connects(faber)
    discover_features.ask_once(row.pk)
    die_and_recover("after_message_before_mark")
    [query] = ids_of_messages(phone, discover_features.QUERY)
    assert discover_features.ask_once(row.pk), "whose caller died sends it only once"
    listed = [{"pid": f"{phone.prefix}issue-credential/2.0"}]
    disclosed = phone.build(discover_features.DISCLOSE, query, protocols=listed)
    phone.post(phone.pack(disclosed))
    die_and_recover("inside_handling")
    definition = faber.defines("name", "level")["definitionId"]
    body = {"definitionId": definition, "connectionId": row.connection_id}
    faber.post("/credentials", body | {"credentialValues": VALUES})
    queues.worker_catches_up()
    assert phone.newest("issue-credential/2.0/offer-credential")
    assert len(ids_of_messages(phone, discover_features.QUERY)) == 1


def test_a_stranger_is_refused_once_though_a_worker_dies(faber, phone):
    faber.post("/tenants/publicDid")
    shown = faber.get("/tenants/publicDid")
    asked = asked_by_did_exchange(phone, shown["did"])
    phone.post(phone.pack(asked, shown["verkey"]))
    die_and_recover("after_message_before_mark")
    report = "didexchange/1.1/problem_report"
    assert len(ids_of_messages(phone, report)) == 1, "sent again it is the same one"
    assert not Connection.objects.exists()


@pytest.mark.parametrize(
    "version, fault", [("1.0", FAULT_POINTS[0]), ("2.0", FAULT_POINTS[1])]
)
def test_a_credential_is_issued_though_a_worker_dies(
    faber, phone, client, fault, version
):
    row = phone.connects(faber)
    path = f"/connections/{row.connection_id}/protocols"
    faber.put(path, {"exchangeVersion": version})
    definition = faber.defines("name", "level", supportRevocation=True)["definitionId"]
    body = {"definitionId": definition, "connectionId": row.connection_id}
    body |= {"credentialValues": VALUES, "automaticIssuance": True}
    made = faber.post("/credentials", body)
    queues.worker_catches_up()
    phone.post(phone.pack(request(phone, client, definition, version)))
    die_and_recover(fault)
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"
    issued = f"issue-credential/{version}/issue-credential"
    assert len(ids_of_messages(phone, issued)) == 1
    assert Credential.objects.get().revocation_index == 1
    assert not queues.pending().exists()


def request(phone, client, definition_id, version):
    offered = phone.newest(ISSUE.replace("1.0", version) + "offer-credential")
    definition = ledger_object(client, "credential-definitions", definition_id)
    offer = read_attachment(offered, "offers~attach")
    asked, _ = anoncreds.create_request(
        offer,
        definition,
        LINK_SECRET,
        phone.party.did,
    )
    members = {"requests~attach": [json_attachment("libindy-cred-request-0", asked)]}
    place = {"attach_id": "libindy-cred-request-0", "format": "hlindy/cred-req@v2.0"}
    members |= {"formats": [place]} if version == "2.0" else {}
    kind = f"issue-credential/{version}/request-credential"
    return phone.build(kind, offered.thread_id, **members)


@pytest.mark.parametrize("kind", ["did-rotate/1.0/hangup", "did-rotate/1.0/rotate"])
def test_what_a_killed_worker_had_begun_leaves_no_trace(faber, phone, kind):
    phone.connects(faber)
    body = phone.build(kind, to_did=dids.peer_4(type(phone)().verkey, phone.endpoint))
    phone.post(phone.pack(body))
    before = everything()
    assert killed_worker("inside_handling") == -signal.SIGKILL
    assert everything() == before
    assert InboundMessage.objects.get(message_id=body["@id"]).status == "pending"
    queues.worker_catches_up()
    assert InboundMessage.objects.get(message_id=body["@id"]).status == "done"
