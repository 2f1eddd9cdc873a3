"""Connections of any size: gone at once, and their rows in small transactions."""

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from connections import removal
from connections.models import BasicMessage, Connection
from connections.protocols import held_requests
from core.work.retention import BatchBudget
from credentials.models import Credential
from tenants.lifecycle import erasure
from tenants.models import Erasure
from tests.support import queues
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from tests.support.steps import step
from wallets.models import Key

VALUES = {"name": "Ann", "level": "7"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("core.work.retention.PAUSE_SECONDS", 0)


@pytest.fixture
def few(monkeypatch):
    """More than two rows are many."""
    monkeypatch.setattr(removal, "MAX_IN_CALL", 2)
    monkeypatch.setattr(removal, "ROWS_AT_ONCE", 2)


@step
def row(faber, holder, badge):
    """Faber's connection with three texts, a credential and two open offers."""
    holder.receives(faber, badge, VALUES)
    for _ in range(2):
        faber.offers(holder, badge, VALUES)
    return with_texts(faber, holder.known_as(faber), 3)


def with_texts(faber, connection_id, count):
    """Write so many texts. Return the connection."""
    for number in range(count):
        faber.post("/messages", {"connectionId": connection_id, "text": str(number)})
    return Connection.objects.get(connection_id=connection_id)


def deletes(faber, row):
    faber.delete(f"/connections/{row.connection_id}")


def states_of(party):
    return [one["state"] for one in party.get("/credentials")]


def count_left(row):
    """How many texts and credentials the connection still has."""
    return [
        model.objects.filter(connection=row).count()
        for model in (BasicMessage, Credential)
    ]


def test_a_deleted_connection_is_found_nowhere(faber, row, few):
    text = faber.get(f"/messages/connection/{row.connection_id}")[0]["id"]
    deletes(faber, row)
    assert count_left(row) == [3, 3], "the call did not wait for them"
    for path in (
        f"/connections/{row.connection_id}",
        f"/messages/connection/{row.connection_id}",
        f"/messages/{text}",
    ):
        assert_error(error_of(faber.get, path), 404, "not_found")
    assert faber.get("/connections") == []
    assert {one.get("connectionId") for one in faber.get("/credentials")} == {None}
    assert faber.get("/credentials", connectionId=row.connection_id) == []
    made = faber.post("/connections", {"connectionId": row.connection_id})
    worker_erases()
    assert faber.get(f"/connections/{row.connection_id}") == made, "its id is free"


def test_its_peer_is_told_and_exchanges_and_tombstones_stay(faber, alice, row, few):
    deletes(faber, row)
    left = ["Rejected"] * 2 + ["Issued"]
    assert states_of(alice) == states_of(faber) == left
    path = f"/verifications/propose/{row_of_peer(row).connection_id}"
    body = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    assert_error(error_of(alice.put, path, body), 409, "connection_gone")
    finish()
    assert not Connection._base_manager.filter(pk=row.pk).exists()
    assert not BasicMessage.objects.filter(wallet__is_organization=True).exists()
    assert states_of(faber) == left
    assert Key.objects.get(pk=row.my_key_id).seed is None


def row_of_peer(row):
    return Connection.objects.get(their_key=row.my_key.verkey)


def finish():
    """Do what is left; each worker is stopped one batch later than the one before."""
    for number in range(100):
        if not (job := Erasure.objects.first()):
            return
        erasure.erase(job.lease(), Batches(number))
    pytest.fail("it does not come to an end")


class Batches(BatchBudget):
    def __init__(self, number):
        self.left = number


def test_a_small_one_is_gone_with_the_call(faber, alice):
    row = with_texts(faber, alice.known_as(faber), 3)
    deletes(faber, row)
    assert not Connection._base_manager.filter(pk=row.pk).exists()
    assert not Erasure.objects.exists()


@pytest.fixture
def open_offers(faber, met, badge, few):
    """Faber's connection with three open offers."""
    for _ in range(3):
        faber.offers(met, badge, VALUES)
    return Connection.objects.get(connection_id=met.known_as(faber))


def test_many_open_exchanges_end_after_the_call(faber, alice, open_offers):
    deletes(faber, open_offers)
    assert states_of(alice) == ["Offered"] * 3
    assert_error(error_of(alice.accepts_offer), 409, "connection_gone")
    hidden = Connection._base_manager.get(pk=open_offers.pk)
    offer = Credential.objects.select_related("connection").filter(role="issuer")[0]
    assert offer.connection == hidden and offer.live_connection is None
    finish()
    assert states_of(alice) == states_of(faber) == ["Rejected"] * 3
    assert not Connection._base_manager.filter(pk=open_offers.pk).exists()
    found = faber.get("/events", messageType="credential_rejected")
    told = [one["body"]["data"] for one in found]
    own = [data["connection_id"] for data in told if "wallet_id" not in data]
    assert own == [hidden.connection_id] * 3


def test_a_worker_ends_them_before_the_wallet_deleted_too(faber, alice, open_offers):
    peer = row_of_peer(open_offers)
    alice.delete(f"/connections/{peer.connection_id}")
    assert_error(error_of(alice.accepts_offer), 409, "connection_gone")
    faber.delete(f"/api/wallets/{alice.wallet_id}")
    Erasure.objects.filter(kind="connection").delete()  # another worker has it
    finish()
    assert states_of(faber) == ["Rejected"] * 3
    assert not Connection._base_manager.filter(pk=peer.pk).exists()


def test_peers_are_told_when_the_organization_is_deleted_too(
    faber, acme, badge, few, settings
):
    settings.DELETION_UNDO_HOURS = 0
    bob = acme.hosts("Bob")
    for _ in range(3):
        faber.offers(bob, badge, VALUES)
    faber.delete(f"/connections/{bob.known_as(faber)}")
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    Erasure.objects.filter(kind="connection").delete()  # another worker has it
    worker_erases()
    assert states_of(bob) == ["Rejected"] * 3
    assert not Connection._base_manager.filter(tenant=faber.tenant).exists()


def count_statements(faber, holder, texts):
    holder.meets(faber)
    row = with_texts(faber, holder.known_as(faber), texts)
    with CaptureQueriesContext(database) as captured:
        held_requests.refuse_or_remove(row)
    assert BasicMessage.objects.filter(connection=row).count() == texts
    return len(captured)


def test_the_call_has_as_many_statements_whatever_its_size(faber, few):
    alice, bob = faber.hosts("Alice"), faber.hosts("Bob")
    assert count_statements(faber, alice, 3) == count_statements(faber, bob, 6)


def test_what_waits_for_another_agent_is_packed_by_the_worker(faber, few, phone):
    row = with_texts(faber, phone.connects(faber).connection_id, 5)
    deletes(faber, row)
    assert Key.objects.get(pk=row.my_key_id).seed, "the worker packs with it"
    phone.says(phone.build("basicmessage/1.0/message", content="Are you there?"))
    assert not BasicMessage.objects.filter(direction="Incoming").exists()
    finish()
    assert Key.objects.get(pk=row.my_key_id).seed is None
    queues.worker_catches_up()
    texts = [one.body["content"] for one in phone.inbox[-5:]]
    assert texts == ["0", "1", "2", "3", "4"]
