"""Connections of any size: gone at once, and their rows in small transactions."""

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from agency.core.retention import BatchBudget
from connections import removal
from connections.models import BasicMessage, Connection
from connections.protocols import held_requests
from credentials.models import Credential
from organizations import erasure
from tenants.models import Erasure
from tests.support import queues
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent, listening
from wallets.models import Key

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("agency.core.retention.PAUSE_SECONDS", 0)


@pytest.fixture
def few(monkeypatch):
    """More than two rows are many."""
    monkeypatch.setattr(removal, "MAX_IN_CALL", 2)
    monkeypatch.setattr(removal, "ROWS_AT_ONCE", 2)


@pytest.fixture
def alice(faber):
    return faber.hosts()


@pytest.fixture
def badge(faber):
    return faber.defines(*VALUES)


@pytest.fixture
def row(faber, alice, badge):
    """Faber's connection with seven texts, three credentials and an open offer."""
    for _ in range(3):
        alice.receives(faber, badge, VALUES)
    faber.offers(alice, badge, VALUES)
    for number in range(7):
        write(faber, alice, str(number))
    return Connection.objects.get(connection_id=alice.known_as(faber))


def write(faber, alice, text):
    faber.post("/messages", {"connectionId": alice.known_as(faber), "text": text})


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
    assert count_left(row) == [7, 4], "the call did not wait for them"
    for path in (
        f"/connections/{row.connection_id}",
        f"/messages/connection/{row.connection_id}",
        f"/messages/{text}",
    ):
        assert_error(error_of(faber.get, path), 404, "not_found")
    assert faber.get("/connections") == []
    assert {one.get("connectionId") for one in faber.get("/credentials")} == {None}
    assert faber.get("/credentials", connectionId=row.connection_id) == []


def test_its_id_is_free_at_once(faber, row, few):
    deletes(faber, row)
    made = faber.post("/connections", {"connectionId": row.connection_id})
    assert made["connectionId"] == row.connection_id
    worker_erases()
    assert faber.get(f"/connections/{row.connection_id}") == made


def test_its_peer_is_told_in_the_call(faber, alice, badge, row, few):
    deletes(faber, row)
    assert states_of(alice) == states_of(faber) == ["Rejected"] + ["Issued"] * 3
    peer = row_of_peer(row)
    body = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    path = f"/verifications/propose/{peer.connection_id}"
    assert_error(error_of(alice.put, path, body), 409, "connection_gone")


def row_of_peer(row):
    return Connection.objects.get(their_key=row.my_key.verkey)


def finish():
    """Do what is left; each worker is stopped one batch later than the one before."""
    for number in range(100):
        if not (job := Erasure.objects.first()):
            return
        erasure.try_job(job.lease(), Batches(number))
    pytest.fail("it does not come to an end")


class Batches(BatchBudget):
    def __init__(self, number):
        self.left = number


def test_the_worker_leaves_nothing_but_exchanges_and_tombstones(
    faber, alice, row, few
):
    deletes(faber, row)
    finish()
    assert not Connection._base_manager.filter(pk=row.pk).exists()
    assert not BasicMessage.objects.filter(wallet__is_organization=True).exists()
    assert states_of(faber) == ["Rejected"] + ["Issued"] * 3
    assert Key.objects.get(pk=row.my_key_id).seed is None


def test_a_small_one_is_gone_with_the_call(faber, row):
    deletes(faber, row)
    assert not Connection._base_manager.filter(pk=row.pk).exists()
    assert not Erasure.objects.exists()


@pytest.fixture
def open_offers(faber, alice, badge, few):
    """Faber's connection with four open offers."""
    alice.meets(faber)
    for _ in range(4):
        faber.offers(alice, badge, VALUES)
    return Connection.objects.get(connection_id=alice.known_as(faber))


def test_many_open_exchanges_end_after_the_call(faber, alice, open_offers):
    deletes(faber, open_offers)
    assert states_of(alice) == ["Offered"] * 4
    assert_error(error_of(alice.accepts_offer), 409, "connection_gone")
    finish()
    assert states_of(alice) == states_of(faber) == ["Rejected"] * 4
    assert not Connection._base_manager.filter(pk=open_offers.pk).exists()


def test_who_deleted_it_can_accept_nothing_meanwhile(alice, open_offers):
    alice.delete(f"/connections/{row_of_peer(open_offers).connection_id}")
    assert_error(error_of(alice.accepts_offer), 409, "connection_gone")
    finish()
    assert states_of(alice) == ["Rejected"] * 4


def test_a_worker_ends_them_before_the_wallet_that_is_deleted_too(
    faber, alice, badge, open_offers
):
    peer = row_of_peer(open_offers)
    alice.delete(f"/connections/{peer.connection_id}")
    faber.delete(f"/api/wallets/{alice.wallet_id}")
    Erasure.objects.filter(kind="connection").delete()  # another worker has it
    finish()
    assert states_of(faber) == ["Rejected"] * 4
    assert not Connection._base_manager.filter(pk=peer.pk).exists()


def test_its_peers_are_told_when_the_organization_is_deleted_too(
    faber, acme, badge, few
):
    bob = acme.hosts("Bob")
    for _ in range(4):
        faber.offers(bob, badge, VALUES)
    faber.delete(f"/connections/{bob.known_as(faber)}")
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    Erasure.objects.filter(kind="connection").delete()  # another worker has it
    finish()
    assert states_of(bob) == ["Rejected"] * 4


def test_one_that_was_deleted_goes_with_its_organization(faber, row, few):
    deletes(faber, row)
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    finish()
    assert not Connection._base_manager.filter(tenant=faber.tenant).exists()


def count_statements(faber, alice, texts):
    alice.meets(faber)
    for number in range(texts):
        write(faber, alice, str(number))
    row = Connection.objects.get(connection_id=alice.known_as(faber))
    with CaptureQueriesContext(database) as captured:
        held_requests.refuse_or_remove(row)
    assert BasicMessage.objects.filter(connection=row).count() == texts
    return len(captured)


def test_the_call_has_as_many_statements_whatever_its_size(faber, few):
    counts = [
        count_statements(faber, faber.hosts(name), texts)
        for name, texts in (("Alice", 3), ("Bob", 30))
    ]
    assert counts[0] == counts[1]


def test_what_waits_for_another_agent_is_packed_by_the_worker(faber, few, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with listening(Agent()) as phone:
        row = phone.connects(faber)
        for number in range(5):
            body = {"connectionId": row.connection_id, "text": str(number)}
            faber.post("/messages", body)
        deletes(faber, row)
        assert Key.objects.get(pk=row.my_key_id).seed, "the worker packs with it"
        finish()
        assert Key.objects.get(pk=row.my_key_id).seed is None
        queues.worker_catches_up()
        texts = [one.body["content"] for one in phone.inbox[-5:]]
    assert texts == ["0", "1", "2", "3", "4"]


def test_a_message_of_another_agent_is_refused_meanwhile(faber, few, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with listening(Agent()) as phone:
        row = phone.connects(faber)
        for number in range(3):
            body = {"connectionId": row.connection_id, "text": str(number)}
            faber.post("/messages", body)
        deletes(faber, row)
        phone.says(phone.build("basicmessage/1.0/message", content="Are you there?"))
    incoming = BasicMessage.objects.filter(direction="Incoming")
    assert not incoming.exists()
