"""The lock of a connection: both rows, in one order, before anything changes."""

import pytest
from django.db import OperationalError
from django.db import connection as database

from connections.messaging import pair_lock
from connections.models import Connection
from connections.protocols import did_rotate, handshakes
from core.states import move
from core.work import transactions
from credentials.models import Credential
from tests.core.test_plans import NEW_ID, explain, multiply, nodes
from tests.support import queues
from tests.support.races import elsewhere, while_locked
from tests.support.walks import received
from wallets.models import Key, Wallet

ROLES = ("inviter", "invitee")
VALUES = {"name": "Alice", "level": "7"}
either_side = pytest.mark.parametrize("role", ROLES)
WITHOUT_TABLE_SCANS = "SET LOCAL enable_seqscan = off"


@pytest.fixture
def alice(met):
    return met


def read(role):
    return Connection.objects.get(role=role)


def other(role):
    return ROLES[1 - ROLES.index(role)]


def is_free(pk, **lock):
    """Whether another transaction could lock this row now."""

    def lock_it():
        with transactions.atomic():
            rows = Connection.objects.select_for_update(nowait=True, **lock)
            try:
                rows.get(pk=pk)
            except OperationalError:
                return False
        return True

    return elsewhere(lock_it)


@either_side
def test_both_rows_are_locked_from_either_side(alice, role):
    rows = [read(one).pk for one in ROLES]
    with transactions.atomic():
        assert read(role).lock()
        assert [is_free(pk) for pk in rows] == [False, False]
        assert set(transactions.locked_rows()) == set(rows)
    assert [is_free(pk) for pk in rows] == [True, True]


def test_the_rows_of_others_stay_free(faber, alice):
    pair = {read(one).pk for one in ROLES}
    faber.hosts("Bob").meets(faber)
    alice.meets(faber)
    others = Connection.objects.exclude(pk__in=pair)
    for role in ROLES:
        with transactions.atomic():
            assert Connection.objects.get(role=role, pk__in=pair).lock()
            assert [is_free(row.pk) for row in others] == [True] * 4


@either_side
@pytest.mark.parametrize("held", [0, 1], ids=["lower", "higher"])
def test_the_lower_row_is_locked_first(alice, role, held):
    """Who waits for the lower one has not locked the higher one yet."""
    rows = sorted(read(one).pk for one in ROLES)
    row, found = read(role), []

    def hold():
        Connection.objects.select_for_update(no_key=True).get(pk=rows[held])

    def wait():
        with transactions.atomic():
            return row.lock()

    assert while_locked(hold, wait, lambda: found.append(is_free(rows[1 - held])))
    assert found == [held == 0]


def test_several_pairs_are_locked_in_one_order_too(faber, alice):
    for _ in range(3):
        alice.meets(faber)
    rows = list(Connection.objects.order_by("?"))
    with transactions.atomic():
        Connection.lock_all(rows)
        locked = list(transactions.locked_rows())
    assert sorted(locked) == sorted(row.pk for row in rows)
    with database.cursor() as cursor:
        given = {"ids": [row.pk for row in rows]}
        cursor.execute(pair_lock.LOCK_SQL + pair_lock.FOR_CHANGES, given)
        assert [pk for [pk] in cursor.fetchall()] == sorted(locked)
        cursor.execute("EXPLAIN " + pair_lock.LOCK_SQL + pair_lock.FOR_CHANGES, given)
        [top] = cursor.fetchone()
    assert top.startswith("LockRows"), "the rows are sorted before they are locked"


def test_an_invitation_is_locked_with_whoever_accepts_it(faber, monkeypatch):
    """Until the response, only the invitation's key connects the two rows."""
    alice = faber.hosts("Alice")
    queues.crash_before_the_drain(monkeypatch)
    alice.meets(faber)
    assert read("inviter").their_key == read("invitee").their_key == ""
    with transactions.atomic():
        assert read("invitee").lock()
        assert [is_free(read(one).pk) for one in ROLES] == [False, False]


def test_a_connection_with_another_agent_is_one_row(faber, phone):
    row = phone.connects(faber)
    faber.hosts("Alice").meets(faber)
    with transactions.atomic():
        assert row.lock()
        assert list(transactions.locked_rows()) == [row.pk]


def test_an_invitation_for_many_is_kept_from_deletion_and_a_new_one_locked(faber):
    faber.invites(multiParty=True)
    row = read("inviter")
    with transactions.atomic():
        assert row.lock(is_shared=True)
        assert is_free(row.pk, no_key=True), "many wallets accept it at once"
        assert not is_free(row.pk), "as DELETE locks it"
    wallet = Wallet.objects.get(is_organization=True)
    with transactions.atomic():
        made = handshakes.invite(wallet)
        assert made.is_locked and made.lock() is made


def test_a_connection_moves_only_as_the_locked_row(alice):
    row = read("inviter")
    connected = row.State.CONNECTED
    with transactions.atomic():
        with pytest.raises(RuntimeError, match="lock"):
            move(row, [connected], connected)
        locked = row.lock()
        for unlocked in (row, read("inviter")):
            with pytest.raises(RuntimeError, match="lock"):
                move(unlocked, [connected], connected)
        move(locked, [connected], connected)
    with transactions.atomic(), pytest.raises(RuntimeError, match="lock"):
        move(locked, [connected], connected)  # the lock of an earlier transaction


def test_an_exchange_moves_only_on_the_locked_row_of_its_connection(faber, alice):
    faber.offers(alice, faber.defines("name", "level"), VALUES)
    row, credential = read("invitee"), Credential.objects.get(role="holder")
    offered = credential.State.OFFERED
    with transactions.atomic():
        for _ in range(2):
            with pytest.raises(RuntimeError, match="lock"):
                move(credential, [offered], offered)
            locked = row.lock()
        credential.lock()
        assert credential.connection is locked
        move(credential, [offered], offered)
    with transactions.atomic(), pytest.raises(RuntimeError, match="lock"):
        move(credential, [offered], offered)  # the lock of an earlier transaction


def test_nothing_moves_with_a_lock_that_a_savepoint_released(alice):
    row = read("inviter")
    with pytest.raises(RuntimeError, match="atomic"):
        row.lock()
    connected = row.State.CONNECTED
    with transactions.atomic():
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            locked = row.lock()
            raise ZeroDivisionError
        assert is_free(row.pk)
        with pytest.raises(RuntimeError, match="lock"):
            move(locked, [connected], connected)
        again = row.lock()
        assert again is not locked and not locked.is_locked
        move(again, [connected], connected)


def test_all_code_of_a_transaction_gets_one_object_of_a_locked_row(faber, alice):
    one, same, peer = read("inviter"), read("inviter"), read("invitee")
    offered = faber.offers(alice, faber.defines("name", "level"), VALUES)
    credential = Credential.objects.get(pk=offered["credentialId"])
    with transactions.atomic():
        locked = one.lock()
        assert same.lock() is locked.lock() is locked
        credential.lock()
        assert credential.connection is locked
        locked.name = "changed"
        assert one.name != "changed", "it stays as it was read"
        theirs, key = pair_lock.find_by_key(locked.locked_with, peer.my_key.verkey)
        assert theirs is peer.lock() and key == peer.my_key
        assert theirs.locked_with is locked.locked_with
    assert not locked.is_locked and not locked.locked_with


def test_all_code_of_a_transaction_uses_one_object_of_a_thread(faber, alice):
    faber.offers(alice, faber.defines("name", "level"), VALUES)
    first = Credential.objects.get(role="issuer")
    with transactions.atomic():
        first.lock()
        connection = read("inviter").lock()
        found = Credential.find_on_connection(connection, first.thread_id)
        assert found is first
        found.receive_problem(received(found.build_decline("No")))
    assert first.state == "Rejected"


def test_what_was_committed_before_the_lock_is_read(alice):
    stale = read("inviter")
    Connection.objects.filter(pk=stale.pk).update(name="changed meanwhile")
    with transactions.atomic():
        assert stale.lock().name == "changed meanwhile"


@either_side
def test_what_is_committed_during_the_wait_is_read(alice, role):
    stale = read(role)

    def rename():
        row = read(other(role))
        row.lock()
        Connection.objects.filter(pk=stale.pk).update(name="changed meanwhile")

    def wait():
        with transactions.atomic():
            return stale.lock().name

    assert while_locked(rename, wait) == "changed meanwhile"


@either_side
@pytest.mark.parametrize("rotates", ROLES)
def test_keys_that_are_rotated_during_the_wait_are_found(alice, role, rotates):
    """A join would look for the former keys, and miss the rows that it waited for."""
    stale, rows = read(role), {read(one).pk for one in ROLES}
    former = read(rotates).my_key

    def wait():
        with transactions.atomic():
            locked = stale.lock()
            return locked, set(locked.locked_with)

    # Twice: then the peer's row has none of the keys that were read.
    def rotate():
        for _ in range(2):
            with transactions.run_at_end():
                did_rotate.rotate(read(rotates))

    locked, found = while_locked(rotate, wait)
    assert found == rows
    former.refresh_from_db()
    assert former.retired_at
    fresh = read(role)
    assert (locked.my_key, locked.their_key) == (fresh.my_key, fresh.their_key)


@either_side
def test_keys_that_were_rotated_since_the_row_was_read_are_found(alice, role):
    """After two rotations the peer's row has none of the keys that were read."""
    stale, rows = read(role), {read(one).pk for one in ROLES}
    for _ in range(2):
        did_rotate.rotate(read(other(role)))
    with transactions.atomic():
        assert set(stale.lock().locked_with) == rows
        assert [is_free(pk) for pk in rows] == [False, False]


@either_side
def test_a_row_that_is_deleted_during_the_wait_is_not_locked(alice, role):
    stale = read(role)

    def wait():
        with transactions.atomic():
            return stale.lock()

    assert while_locked(lambda: read(role).remove(), wait) is None


def test_the_rows_of_a_pair_are_found_by_indexes(alice):
    row = read("inviter")
    keys = dict.fromkeys(("my_key_id", "other_key_id", "invitation_key_id"), NEW_ID)
    multiply(Connection, connection_id=f"{NEW_ID}::text", token="n::text", **keys)
    multiply(Key, verkey="n::text")
    given = {"ids": [row.pk]}
    with transactions.atomic(), database.cursor() as cursor:
        cursor.execute(WITHOUT_TABLE_SCANS)
        for mode in (pair_lock.FOR_CHANGES, pair_lock.FOR_READING):
            found = explain("COSTS", pair_lock.LOCK_SQL + mode, given)
            reads = [node for node in nodes(found) if "Relation Name" in node]
            tables = {node["Relation Name"] for node in reads}
            assert tables == {"connections_connection", "wallets_key"}
            assert "Seq Scan" not in {node["Node Type"] for node in reads}, found
            conditions = str([node.get("Index Cond") for node in nodes(found)])
            for column in ("id", "my_key_id", "other_key_id", "invitation_key_id"):
                assert f"({column} = ANY" in conditions, (column, found)
            assert "((verkey)::text = " in conditions, found
