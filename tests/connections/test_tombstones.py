"""What a deleted wallet or connection leaves to the other side."""

import pytest

from agency.core.errors import Conflict
from connections.messaging import delivery, outbox
from connections.models import Connection, OutboundMessage
from credentials.models import Credential
from credentials.removal import remove_credential
from tests.support import queues
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from wallets import keys
from wallets.models import Key

VALUES = {"name": "Alice", "level": "7"}


@pytest.fixture
def alice(faber):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    return alice


def deletes_her_connection(faber, alice):
    alice.delete(f"/connections/{alice.known[faber][1]}")


def deletes_her_wallet(faber, alice):
    faber.delete(f"/api/wallets/{alice.wallet_id}")


deletions = pytest.mark.parametrize(
    "deletes", [deletes_her_connection, deletes_her_wallet]
)


@deletions
def test_the_peers_next_message_is_409_connection_gone(faber, alice, deletes):
    badge = faber.defines("name", "level")
    deletes(faber, alice)
    for send in (
        lambda: faber.offers(alice, badge, VALUES),
        lambda: faber.asks(alice, attributes=[{"policyName": "name"}]),
    ):
        assert_error(error_of(send), 409, "connection_gone")
    assert not queues.pending().exists()


@deletions
def test_open_exchanges_become_rejected_at_the_peer(faber, alice, deletes):
    offered = faber.offers(alice, faber.defines("name", "level"), VALUES)
    asked = faber.asks(alice, attributes=[{"policyName": "name"}])
    deletes(faber, alice)
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Rejected"
    assert (
        faber.get(f"/verifications/{asked['verificationId']}")["state"] == "Rejected"
    )


@deletions
def test_an_issued_credential_survives_at_the_issuer(faber, alice, deletes):
    badge = faber.defines("name", "level")
    alice.receives(faber, badge, VALUES)
    deletes(faber, alice)
    assert [row["state"] for row in faber.get("/credentials")] == ["Issued"]


@deletions
def test_a_tombstone_keeps_neither_seed_nor_wallet(faber, alice, deletes):
    mine = Connection.objects.get(connection_id=alice.known[faber][1]).my_key
    deletes(faber, alice)
    mine.refresh_from_db()
    assert mine.retired_at and mine.seed is None and mine.wallet is None


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


def test_what_waited_to_be_sent_still_goes_after_the_keys_are_gone(
    faber, alice, monkeypatch
):
    offered = faber.offers(alice, faber.defines("name", "level"), VALUES)
    with monkeypatch.context() as crashed:
        queues.crash_before_the_drain(crashed)
        deletes_her_wallet(faber, alice)
    assert queues.pending().get().body is None, "packed, as the key to pack it is gone"
    queues.worker_catches_up()
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Rejected"


def test_what_waited_goes_before_the_end_of_the_connection(faber, alice, monkeypatch):
    """Else the holder is told of the end first, and then has an offer of nobody."""
    with monkeypatch.context() as crashed:
        queues.crash_before_the_drain(crashed)
        faber.offers(alice, faber.defines("name", "level"), VALUES)
    queues.let_leases_run_out()
    faber.delete(f"/connections/{alice.known[faber][0]}")
    queues.worker_catches_up()
    assert [row["state"] for row in faber.get("/credentials")] == ["Rejected"]
    assert [row["state"] for row in alice.get("/credentials")] == ["Rejected"]


def test_a_message_to_a_peer_that_went_meanwhile_ends_the_exchange(
    faber, alice, monkeypatch
):
    with monkeypatch.context() as crashed:
        queues.crash_before_the_drain(crashed)
        offered = faber.offers(alice, faber.defines("name", "level"), VALUES)
        deletes_her_wallet(faber, alice)
    queues.worker_catches_up()
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Rejected"
    assert OutboundMessage.objects.filter(last_error="connection_gone").exists()


def test_a_message_whose_exchange_is_deleted_too_does_not_stop_the_worker(
    faber, alice, monkeypatch
):
    offered = faber.offers(alice, faber.defines("name", "level"), VALUES)
    with monkeypatch.context() as crashed:
        queues.crash_before_the_drain(crashed)
        remove_credential(Credential.objects.get(pk=offered["credentialId"]))
        deletes_her_wallet(faber, alice)
    queues.worker_catches_up()
    assert not queues.pending().exists()


def test_a_request_that_was_on_its_way_when_its_wallet_went_ends_as_rejected(
    faber, alice, monkeypatch
):
    offered = faber.offers(
        alice, faber.defines("name", "level"), VALUES, automaticIssuance=True
    )
    with monkeypatch.context() as crashed:
        queues.crash_before_the_drain(crashed)
        alice.accepts_offer()
        deletes_her_wallet(faber, alice)
    for _ in range(2):
        queues.worker_catches_up()
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Rejected"
    assert not queues.pending().exists()


@pytest.mark.parametrize("is_broken", [False, True])
def test_an_offer_by_link_that_is_deleted_in_use_ends_at_the_holder(
    faber, alice, monkeypatch, is_broken
):
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


def test_a_message_that_cannot_be_encrypted_does_not_stop_a_deletion(
    faber, alice, monkeypatch
):
    """An older release stored keys of peers that are no points of the curve."""
    fails = RuntimeError("broken")
    with monkeypatch.context() as patched:
        patched.setattr(delivery, "_handle_or_refuse", raiser(fails))
        patched.setattr(delivery, "_deliver", raiser(fails))
        faber.offers(alice, faber.defines("name", "level"), VALUES)
    bad = keys.encode_key(bytes([2]) + bytes(31))
    OutboundMessage.objects.update(
        routing_keys=[bad], endpoint="https://agent.example", is_hosted=False
    )
    faber.delete(f"/connections/{alice.known[faber][0]}")
    offer = OutboundMessage.objects.order_by("pk").first()
    assert (offer.status, offer.last_error) == ("exhausted", "bad_key")


def raiser(error):
    def raise_it(*arguments):
        raise error

    return raise_it
