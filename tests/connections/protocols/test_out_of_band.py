"""Out-of-band invitations and DID exchange, between wallets and with other agents."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from connections.didcomm import dids, message
from connections.didcomm.formats import MessageFormat
from connections.didcomm.message import PREFIX as NEW
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
from tests.support.errors import error_of
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import connects_without_endpoint
from verifications.present_proof import messages as present_proof
from wallets.models import Wallet


@pytest.fixture
def invited(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant, is_organization=True)
    return handshakes.invite(wallet, options=out_of_band.OutOfBandOptions())


def states():
    return set(Connection.objects.values_list("state", "handshake"))


def accepted(faber, row):
    return faber.hosts("Alice").accepts_invitation(message.encode_url(row.invitation))


def test_wallets_here_connect_by_did_exchange(faber, invited):
    assert accepted(faber, invited)["state"] == "Connected"
    assert states() == {("Connected", "didexchange/1.1")}
    assert not queues.pending().exists()


@pytest.mark.parametrize(
    "offered", ["didexchange/1.0", "connections/1.0", "didexchange/1.7"]
)
def test_the_handshake_is_one_that_is_offered(faber, invited, offered):
    protocols = [message.PREFIX + offered]
    body = invited.invitation | {"handshake_protocols": protocols}
    faber.hosts("Alice").accepts_invitation(json.dumps(body))
    assert states() == {("Connected", offered.replace("1.7", "1.1"))}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_agent_elsewhere_connects_by_did_exchange(invited, phone, version):
    parent, signer = invited.invitation["@id"], invited.invitation_key.verkey
    asked = did_exchange.build_request(
        version, "Phone", phone.party, phone.seed, phone.prefix, parent
    )
    phone.says(asked, to=signer)
    answered = phone.newest(f"didexchange/{version}/response")
    phone.their_key = did_exchange.read_response(answered, signer).verkey
    assert Connection.objects.get(pk=invited.pk).state == "Negotiating"
    phone.says(
        did_exchange.build_complete(version, asked["@id"], phone.prefix, parent)
    )
    row = Connection.objects.get(pk=invited.pk)
    assert (row.state, row.their_key) == ("Connected", phone.verkey)
    assert phone.newest(discover_features.QUERIES)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_alice_accepts_an_out_of_band_invitation_of_another_agent(
    faber, phone, version
):
    offered = (f"didexchange/{version}",)
    body = out_of_band.build_invitation(
        "invitation-1", "Shop", "", phone.party, offered
    )
    alice = faber.hosts("Alice")
    mine = alice.accepts_invitation(json.dumps(body))
    queues.sweep()
    asked = phone.newest(f"didexchange/{version}/request")
    phone.their_key = did_exchange.read_request(asked).verkey
    phone.says(did_exchange.build_response(phone.party, phone.seed, asked))
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"
    kinds = [one.type for one in phone.inbox]
    assert f"didexchange/{version}/complete" in kinds


def test_the_answer_to_what_an_invitation_carried_names_the_invitation(faber, phone):
    asked = {"name": "P", "version": "1.0", "nonce": "1", "requested_predicates": {}}
    asked["requested_attributes"] = {"name": {"name": "name"}}
    request = present_proof.build_request(asked, MessageFormat(message.PREFIX, "2.0"))
    offered = ("didexchange/1.1",)
    body = out_of_band.build_invitation(
        "invitation-1", "Shop", "", phone.party, offered
    )
    alice = faber.hosts("Alice")
    alice.accepts_invitation(json.dumps(out_of_band.with_attachment(body, request)))
    queues.sweep()
    handshake = phone.newest("didexchange/1.1/request")
    phone.their_key = did_exchange.read_request(handshake).verkey
    phone.says(did_exchange.build_response(phone.party, phone.seed, handshake))
    alice.put(
        f"/verifications/{alice.newest('verifications')['verificationId']}/decline"
    )
    queues.sweep()
    report = phone.newest("present-proof/2.0/problem-report")
    assert report.body["~thread"] == {"thid": request["@id"], "pthid": "invitation-1"}


def test_a_response_that_the_invitation_has_not_signed_connects_nobody(faber, phone):
    body = out_of_band.build_invitation(
        "invitation-1", "Shop", "", phone.party, ("didexchange/1.1",)
    )
    alice = faber.hosts("Alice")
    mine = alice.accepts_invitation(json.dumps(body))
    queues.sweep()
    asked = phone.newest("didexchange/1.1/request")
    mallory = type(phone)()
    mallory.endpoint, mallory.their_key = (
        phone.endpoint,
        did_exchange.read_request(asked).verkey,
    )
    mallory.says(did_exchange.build_response(mallory.party, mallory.seed, asked))
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Negotiating"


def test_a_peer_takes_a_new_key(faber, phone):
    row = phone.connects(faber)
    other = type(phone)()
    other.endpoint, other.their_key = phone.endpoint, phone.their_key
    to_did = dids.peer_4(other.verkey, other.endpoint)
    phone.says(phone.build(did_rotate.ROTATE, to_did=to_did))
    assert phone.newest(did_rotate.ACK).body["status"] == "OK"  # ACA-Py requires it
    assert Connection.objects.get(pk=row.pk).their_key == other.verkey


def test_a_peer_that_says_twice_that_it_takes_a_new_key_is_heard_on(faber, phone):
    """Its first answer was lost: it still uses the key of before."""
    row = phone.connects(faber)
    other = type(phone)()
    rotate = phone.build(
        did_rotate.ROTATE, to_did=dids.peer_4(other.verkey, phone.endpoint)
    )
    phone.says(rotate)
    phone.says(rotate | {"@id": "again"})
    assert phone.newest(did_rotate.ACK).thread_id == "again"
    row = Connection.objects.get(pk=row.pk)
    assert (row.their_key, row.their_former_key) == (other.verkey, phone.verkey)
    phone.says(phone.build(basic_message.MESSAGE, content="still here"))
    assert BasicMessage.objects.count() == 1


def test_we_take_a_new_key_when_the_peer_agrees(faber, phone):
    row = phone.connects(faber)
    former = row.my_key.verkey
    says_it_rotates(phone)
    row = Connection.objects.get(pk=row.pk)
    did_rotate.rotate(row)
    queues.sweep()
    asked = phone.newest(did_rotate.ROTATE)
    phone.says(phone.build(did_rotate.ACK, asked.id))
    row = Connection.objects.get(pk=row.pk)
    assert row.my_key.verkey == dids.read(asked.body["to_did"]).verkey != former
    assert row.other_key.verkey == former


def says_it_rotates(phone):
    phone.says(
        phone.build(
            discover_features.DISCLOSE, protocols=[{"pid": f"{NEW}did-rotate/1.0"}]
        )
    )


def test_a_peer_that_may_not_know_rotation_is_left_its_key(faber, phone):
    row = phone.connects(faber)
    answer = faber.send("post", f"/connections/{row.connection_id}/rotate")
    assert (answer.status_code, answer.json()["code"]) == (409, "rotation_unknown")


def test_what_waits_for_a_phone_goes_to_its_new_key(faber):
    pocket, other = Agent(), Agent()
    row = connects_without_endpoint(pocket, faber)
    basic_message.send_text(row, "waits")
    other.their_key = pocket.their_key
    pocket.asks(pocket.build(did_rotate.ROTATE, to_did=dids.peer_4(other.verkey, "")))
    assert pocket.newest(did_rotate.ACK)
    other.asks(other.build(trust_ping.PING, response_requested=False))
    assert other.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_what_waits_for_a_phone_is_sent_to_the_mediator_it_got(faber, phone):
    pocket = Agent()
    row = connects_without_endpoint(pocket, faber)
    basic_message.send_text(row, "waits")
    phone.their_key = pocket.their_key
    pocket.asks(
        pocket.build(
            did_rotate.ROTATE, to_did=dids.peer_4(phone.verkey, phone.endpoint)
        )
    )
    queues.sweep()
    assert phone.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_what_waits_for_a_phone_that_left_its_mediator_is_kept_for_it(faber, phone):
    row = phone.connects(faber)
    phone.status = 500
    basic_message.send_text(row, "waits")
    queues.sweep()
    pocket = Agent()
    pocket.their_key = phone.their_key
    phone.asks(phone.build(did_rotate.ROTATE, to_did=dids.peer_4(pocket.verkey, "")))
    waiting = OutboundMessage.objects.get(status="pending")
    assert waiting.due_at > timezone.now() + timedelta(days=29)
    pocket.asks(pocket.build(trust_ping.PING, response_requested=False))
    assert pocket.newest(basic_message.MESSAGE).body["content"] == "waits"


def test_a_peer_that_hung_up_is_not_heard_any_more(faber, phone):
    row = phone.connects(faber)
    phone.says(phone.build(did_rotate.HANGUP))
    phone.inbox.clear()
    ended = faber.get(f"/connections/{row.connection_id}")["endedAtUtc"]
    text = phone.build(basic_message.MESSAGE, content="One more thing")
    for body in (
        phone.build(trust_ping.PING),
        text,
        phone.build(did_rotate.HANGUP),
    ):
        phone.says(body)
    assert phone.inbox == [] and not BasicMessage.objects.exists()
    assert faber.get(f"/connections/{row.connection_id}")["endedAtUtc"] == ended


def test_a_peer_that_hung_up_is_not_written_to(faber, phone):
    row = phone.connects(faber)
    phone.says(phone.build(did_rotate.HANGUP))
    answer = faber.send(
        "post", "/messages", {"connectionId": row.connection_id, "text": "Hi"}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "connection_gone")


@pytest.mark.parametrize(
    "query", ["*", "https://didcomm.org/*", "did:sov:*;spec/trust_ping/*"]
)
def test_what_is_spoken_is_disclosed(faber, phone, query):
    phone.connects(faber)
    phone.says(phone.build(discover_features.QUERY, query=query))
    families = discover_features.read_protocols(
        phone.newest(discover_features.DISCLOSE)
    )
    assert "trust_ping/1.0" in families
    asked = [{"feature-type": "protocol", "match": query}]
    phone.says(phone.build(discover_features.QUERIES, queries=asked))
    assert (
        discover_features.read_protocols(phone.newest(discover_features.DISCLOSURES))
        == families
    )


def test_every_protocol_spoken_has_its_roles(faber):
    assert discover_features.ROLES.keys() == {
        one.split("/")[0] for one in discover_features.router.supported_protocols()
    }
    assert (
        trust_ping.PING.rpartition("/")[0]
        in discover_features.router.supported_protocols()
    )


def test_a_word_of_a_handshake_to_an_offer_without_one_is_refused_once(faber, phone):
    values = {"name": "Ann", "level": "7"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    faber.post("/credentials", body | {"protocol": "out-of-band"})
    row = Connection.objects.get(connectionless=True)
    phone.says(phone.build(connections_1_0.RESPONSE), to=row.my_key.verkey)
    assert InboundMessage.objects.get().status == "done"


def test_an_attachment_that_cannot_be_read_is_refused_with_its_invitation(
    faber, invited
):
    carrying = out_of_band.with_attachment(
        invited.invitation, {"@type": "https://didcomm.org/x"}
    )
    alice = faber.hosts("Alice")
    error = error_of(alice.accepts_invitation, message.encode_url(carrying))
    assert (error.status, alice.get("/connections")) == (400, [])
