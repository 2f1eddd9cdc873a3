"""What a deleted wallet or connection leaves to the other side."""

from unittest.mock import Mock

import pytest

from connections.messaging import outbox
from connections.models import Connection, OutboundMessage
from connections.transport import delivery
from core.errors import Conflict
from credentials.models import Credential
from credentials.removal import remove_credential
from tests.support import queues
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from wallets import keys
from wallets.models import Key

VALUES = {"name": "Alice", "level": "7"}


@pytest.fixture
def alice(met):
    return met


def state_of(faber, offered):
    return faber.get(f"/credentials/{offered['credentialId']}")["state"]


def deletes_her_connection(faber, alice):
    alice.delete(f"/connections/{alice.known[faber][1]}")


def deletes_her_wallet(faber, alice):
    faber.delete(f"/api/wallets/{alice.wallet_id}")


deletions = pytest.mark.parametrize(
    "deletes", [deletes_her_connection, deletes_her_wallet]
)


@deletions
def test_a_peers_exchanges_are_rejected_and_it_gets_409(faber, alice, badge, deletes):
    alice.receives(faber, badge, VALUES)
    mine = Connection.objects.get(connection_id=alice.known[faber][1]).my_key
    faber.offers(alice, badge, VALUES)
    asked = faber.asks(alice, attributes=[{"policyName": "name"}])
    deletes(faber, alice)
    assert [one["state"] for one in faber.get("/credentials")] == [
        "Rejected",
        "Issued",
    ]
    verification = faber.get(f"/verifications/{asked['verificationId']}")
    assert verification["state"] == "Rejected"
    mine.refresh_from_db()
    assert mine.retired_at and mine.seed is None and mine.wallet is None
    for send in (
        lambda: faber.offers(alice, badge, VALUES),
        lambda: faber.asks(alice, attributes=[{"policyName": "name"}]),
    ):
        assert_error(error_of(send), 409, "connection_gone")
    assert not queues.pending().exists()


@pytest.mark.slow
def test_deleting_a_wallet_with_many_connections_ends_them_all(faber, alice):
    count = delivery.MAX_HANDLED_BEFORE_COMMIT + 2
    badge = faber.defines("name", "level")
    for _ in range(count):
        alice.meets(faber)
        faber.offers(alice, badge, VALUES)
    deletes_her_wallet(faber, alice)
    queues.worker_catches_up()
    worker_erases()
    assert set(Credential.objects.values_list("state", flat=True)) == {"Rejected"}
    assert Credential.objects.count() == count


def test_a_withdrawn_invitation_is_409(faber, alice):
    invited = faber.invites()
    faber.delete(f"/connections/{invited['connectionId']}")
    error = error_of(alice.accepts_invitation, invited["invitation"])
    assert_error(error, 409, "invitation_gone")


def test_what_waited_still_goes_after_the_keys_are_gone(faber, alice, badge, crashed):
    offered = faber.offers(alice, badge, VALUES)
    with crashed():
        deletes_her_wallet(faber, alice)
    assert queues.pending().get().body is None, "packed, as the key to pack it is gone"
    queues.worker_catches_up()
    assert state_of(faber, offered) == "Rejected"


def test_what_waited_goes_before_the_connections_end(faber, alice, badge, crashed):
    """Else the holder is told of the end first, and then has an offer of nobody."""
    with crashed():
        faber.offers(alice, badge, VALUES)
    queues.let_leases_run_out()
    faber.delete(f"/connections/{alice.known[faber][0]}")
    queues.worker_catches_up()
    for party in (faber, alice):
        assert [row["state"] for row in party.get("/credentials")] == ["Rejected"]


def test_a_message_to_a_peer_that_left_ends_the_exchange(faber, alice, badge, crashed):
    with crashed():
        offered, gone = (faber.offers(alice, badge, VALUES) for _ in range(2))
        remove_credential(Credential.objects.get(pk=gone["credentialId"]))
        deletes_her_wallet(faber, alice)
    queues.worker_catches_up()
    assert state_of(faber, offered) == "Rejected"
    assert OutboundMessage.objects.filter(last_error="connection_gone").exists()
    assert not queues.pending().exists(), "one whose exchange is gone stops nothing"


def test_a_request_of_a_wallet_that_left_is_rejected(faber, alice, badge, crashed):
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    with crashed():
        alice.accepts_offer()
        deletes_her_wallet(faber, alice)
    for _ in range(2):
        queues.worker_catches_up()
    assert state_of(faber, offered) == "Rejected"
    assert not queues.pending().exists()


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_deleted_offer_ends_at_the_holder(faber, alice, monkeypatch, is_broken):
    """Also if the message could not be handled while the connection existed."""
    definition = faber.defines("name", "level")["definitionId"]
    body = {"definitionId": definition, "credentialValues": VALUES}
    offered = faber.post("/credentials", body)
    alice.put_form("/credentials/fromData", credentialData=offered["offerData"])
    with monkeypatch.context() as broken:
        if is_broken:
            broken.setattr(Credential, "receive_problem", lambda *given: 1 / 0)
        remove_credential(Credential.objects.get(pk=offered["credentialId"]))
    queues.worker_catches_up()
    assert alice.newest("credentials")["state"] == "Rejected"
    assert faber.get("/credentials") == []
    assert not Connection.objects.filter(connectionless=True, role="inviter").exists()


def test_a_party_that_left_a_tombstone_cannot_be_written_to(faber, alice):
    connection = Connection.objects.get(connection_id=alice.known_as(faber))
    Key.objects.get(verkey=connection.their_key).retire()
    with pytest.raises(Conflict) as refused:
        outbox.enqueue(connection, {})
    assert refused.value.code == "connection_gone"


def test_what_cannot_be_encrypted_stops_no_deletion(faber, alice, badge, monkeypatch):
    """An older release stored keys of peers that are no points of the curve."""
    with monkeypatch.context() as patched:
        for name in ("_handle_or_refuse", "_deliver"):
            patched.setattr(delivery, name, Mock(side_effect=RuntimeError("broken")))
        faber.offers(alice, badge, VALUES)
    bad = keys.encode_key(bytes([2]) + bytes(31))
    OutboundMessage.objects.update(
        routing_keys=[bad], endpoint="https://agent.example", is_hosted=False
    )
    faber.delete(f"/connections/{alice.known[faber][0]}")
    offer = OutboundMessage.objects.order_by("pk").first()
    assert (offer.status, offer.last_error) == ("exhausted", "bad_key")
