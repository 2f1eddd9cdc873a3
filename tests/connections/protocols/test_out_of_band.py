"""Out-of-band invitations and DID exchange, between wallets and with other agents."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from connections.didcomm import dids, message
from connections.didcomm.formats import MessageFormat
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from connections.protocols import (
    basic_message,
    connections_1_0,
    did_exchange,
    did_rotate,
    discover_features,
    handshakes,
    out_of_band,
    trust_ping,
)
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import connects_by_did_exchange
from verifications import messages as present_proof
from wallets.models import Wallet


@pytest.fixture
def invited(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant, is_organization=True)
    return handshakes.invite(wallet, options=out_of_band.OutOfBandOptions())


@pytest.mark.parametrize(
    "offered", [None, "didexchange/1.0", "connections/1.0", "didexchange/1.7"]
)
def test_the_handshake_is_one_that_is_offered(alice, invited, offered):
    body = invited.invitation
    if offered:
        body = body | {"handshake_protocols": [message.PREFIX + offered]}
    alice.accepts_invitation(json.dumps(body))
    spoken = (offered or "didexchange/1.1").replace("1.7", "1.1")
    states = set(Connection.objects.values_list("state", "handshake"))
    assert states == {("Connected", spoken)}
    assert not queues.pending().exists()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_agent_elsewhere_connects_by_did_exchange(faber, phone, version):
    row = connects_by_did_exchange(phone, faber, version)
    assert (row.state, row.their_key) == ("Connected", phone.verkey)
    assert phone.newest(discover_features.QUERIES)


def invitation_of(phone, version="1.1"):
    offered = (f"didexchange/{version}",)
    return out_of_band.build_invitation("invited-1", "Shop", "", phone.party, offered)


def responds(phone, asked):
    phone.their_key = did_exchange.read_request(asked).verkey
    phone.says(did_exchange.build_response(phone.party, phone.seed, asked))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_alice_accepts_an_out_of_band_invitation_from_outside(alice, phone, version):
    mine = alice.accepts_invitation(json.dumps(invitation_of(phone, version)))
    queues.sweep()
    asked = phone.newest(f"didexchange/{version}/request")
    mallory = phone.with_next_key()
    responds(mallory, asked)
    path = f"/connections/{mine['connectionId']}"
    assert alice.get(path)["state"] == "Negotiating"
    responds(phone, asked)
    assert alice.get(path)["state"] == "Connected"
    kinds = [one.type for one in phone.inbox]
    assert f"didexchange/{version}/complete" in kinds


def test_the_answer_to_what_an_invitation_carried_names_the_invitation(alice, phone):
    asked = {"name": "P", "version": "1.0", "nonce": "1", "requested_predicates": {}}
    asked["requested_attributes"] = {"name": {"name": "name"}}
    request = present_proof.build_request(asked, MessageFormat(message.PREFIX, "2.0"))
    body = out_of_band.with_attachment(invitation_of(phone), request)
    alice.accepts_invitation(json.dumps(body))
    queues.sweep()
    responds(phone, phone.newest("didexchange/1.1/request"))
    mine = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{mine}/decline")
    queues.sweep()
    report = phone.newest("present-proof/2.0/problem-report")
    assert report.body["~thread"] == {"thid": request["@id"], "pthid": "invited-1"}


def rotation(phone, verkey, endpoint=""):
    to_did = dids.peer_4(verkey, endpoint)
    return phone.build(did_rotate.ROTATE, to_did=to_did)


def test_a_peer_that_says_twice_that_it_takes_a_new_key_is_heard_on(row, phone):
    """Its first answer was lost: it still uses the key of before."""
    other = Agent()
    rotate = rotation(phone, other.verkey, phone.endpoint)
    phone.says(rotate)
    phone.says(rotate | {"@id": "again"})
    assert phone.newest(did_rotate.ACK).thread_id == "again"
    row = Connection.objects.get(pk=row.pk)
    assert (row.their_key, row.their_former_key) == (other.verkey, phone.verkey)
    phone.says(phone.build(basic_message.MESSAGE, content="still here"))
    assert BasicMessage.objects.count() == 1


def test_we_take_a_new_key_when_the_peer_knows_rotation_and_agrees(faber, row, phone):
    path, former = f"/connections/{row.connection_id}/rotate", row.my_key.verkey
    assert_error(faber.send("post", path), 409, "rotation_unknown")
    known = [{"pid": f"{message.PREFIX}did-rotate/1.0"}]
    phone.says(phone.build(discover_features.DISCLOSE, protocols=known))
    faber.post(path)
    queues.sweep()
    asked = phone.newest(did_rotate.ROTATE)
    phone.says(phone.build(did_rotate.ACK, asked.id))
    row = Connection.objects.get(pk=row.pk)
    assert row.my_key.verkey == dids.read(asked.body["to_did"]).verkey != former
    assert row.other_key.verkey == former


def test_what_waits_for_a_phone_goes_to_its_new_key(pocket, pocket_row):
    basic_message.send_text(pocket_row, "waits")
    other = pocket.with_next_key()
    pocket.asks(rotation(pocket, other.verkey))
    assert pocket.newest(did_rotate.ACK)
    other.asks(other.build(trust_ping.PING, response_requested=False))
    assert other.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_what_waits_for_a_phone_goes_to_the_mediator_it_got(pocket, pocket_row, phone):
    basic_message.send_text(pocket_row, "waits")
    phone.their_key = pocket.their_key
    pocket.asks(rotation(pocket, phone.verkey, phone.endpoint))
    queues.sweep()
    assert phone.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_what_waits_for_a_phone_that_left_its_mediator_is_kept_for_it(row, phone):
    phone.status = 500
    basic_message.send_text(row, "waits")
    queues.sweep()
    pocket = phone.with_next_key()
    phone.asks(rotation(phone, pocket.verkey))
    waiting = OutboundMessage.objects.get(status="pending")
    assert waiting.due_at > timezone.now() + timedelta(days=29)
    pocket.asks(pocket.build(trust_ping.PING, response_requested=False))
    assert pocket.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_a_peer_that_hung_up_is_neither_heard_nor_written_to(faber, row, phone):
    phone.says(phone.build(did_rotate.HANGUP))
    phone.inbox.clear()
    ended = faber.get(f"/connections/{row.connection_id}")["endedAtUtc"]
    text = phone.build(basic_message.MESSAGE, content="One more thing")
    for body in (phone.build(trust_ping.PING), text, phone.build(did_rotate.HANGUP)):
        phone.says(body)
    assert phone.inbox == [] and not BasicMessage.objects.exists()
    assert faber.get(f"/connections/{row.connection_id}")["endedAtUtc"] == ended
    body = {"connectionId": row.connection_id, "text": "Hi"}
    assert_error(faber.send("post", "/messages", body), 409, "connection_gone")


def test_what_is_spoken_is_disclosed(row, phone):
    read = discover_features.read_protocols
    for query in ("*", "https://didcomm.org/*", "did:sov:*;spec/trust_ping/*"):
        phone.says(phone.build(discover_features.QUERY, query=query))
        families = read(phone.newest(discover_features.DISCLOSE))
        assert "trust_ping/1.0" in families, query
        asked = [{"feature-type": "protocol", "match": query}]
        phone.says(phone.build(discover_features.QUERIES, queries=asked))
        assert read(phone.newest(discover_features.DISCLOSURES)) == families


def test_every_protocol_spoken_has_its_roles():
    spoken = discover_features.router.supported_protocols()
    assert discover_features.ROLES.keys() == {one.split("/")[0] for one in spoken}
    assert trust_ping.PING.rpartition("/")[0] in spoken


def test_a_word_of_a_handshake_to_an_offer_without_one_is_refused_once(faber, phone):
    values = {"name": "Ann", "level": "7"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    faber.post("/credentials", body | {"protocol": "out-of-band"})
    row = Connection.objects.get(connectionless=True)
    phone.says(phone.build(connections_1_0.RESPONSE), to=row.my_key.verkey)
    assert InboundMessage.objects.get().status == "done"


def test_an_unreadable_attachment_is_refused_with_its_invitation(alice, invited):
    attached = {"@type": "https://didcomm.org/x"}
    carrying = out_of_band.with_attachment(invited.invitation, attached)
    error = error_of(alice.accepts_invitation, message.encode_url(carrying))
    assert (error.status, alice.get("/connections")) == (400, [])
