"""After a restore, cursors of the time before are refused: they would skip events."""

from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from agency.ops.fail_over import note_switch
from core.database.base import ServerChanged
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.work import transactions
from tests.factories import TenantFactory
from tests.support.errors import assert_error
from tests.support.keys import stored_spare_key
from tests.support.races import at_once
from tests.webhooks.events.test_feed import Reader, ids, settled
from wallets import key_generator, key_pool, key_queue
from wallets.models import SpareKey
from webhooks import tasks
from webhooks.events import epochs, feed
from webhooks.events.models import FeedSwitch
from webhooks.models import Event, FeedEpoch


def begin_epoch():
    call_command("begin_epoch", verbosity=0)


def read_after(organization, cursor):
    return organization.send("get", f"/events?after={cursor}")


def test_each_restore_refuses_the_cursors_of_all_times_before(faber):
    faber.invites(connectionId="a1")
    before, old = Event.objects.get().transaction_id, faber.get("/events")[0]["cursor"]
    assert read_after(faber, old).status_code == 200
    begin_epoch()
    assert Event.objects.get().transaction_id == before, "a number of this server"
    refused = read_after(faber, old)
    assert_error(refused, 400, "database_restored")
    assert "`start`" in refused.json()["message"]
    newer = faber.get("/events")[0]["cursor"]
    assert ids(read_after(faber, newer).json()) == []
    begin_epoch()
    for cursor in (old, newer):
        assert_error(read_after(faber, cursor), 400, "database_restored")
    assert FeedEpoch.objects.count() == 1


def fail_over():
    """Connect as to a replica that has just taken over."""
    connection.ensure_connection()
    note_switch(connection.connection)
    FeedSwitch.objects.update(timeline=0)
    note_switch(connection.connection)


def lost_cursor():
    """Of an event of the former primary, which the replica did not get."""
    number = feed.current_horizon().first_unassigned + 50
    event = smallest_uuid7(unix_milliseconds(timezone.now()))
    position = feed.Position(number, str(event), feed.current_horizon().epoch)
    return feed.cursor_for(position)


def test_a_fail_over_refuses_only_the_cursors_of_what_was_lost(faber):
    faber.invites(connectionId="a1")
    kept = faber.get("/events")[0]["cursor"]
    for name in ("b1", "c1"):  # each fail-over refuses those of the one before too
        lost = lost_cursor()
        fail_over()
        faber.invites(connectionId=name)
        assert_error(read_after(faber, lost), 400, "database_restored")
    reader = Reader(faber, f"after={kept}")
    assert ids(reader.all()) == ["b1", "c1"]
    faber.invites(connectionId="d1")
    assert ids(reader.all()) == ["d1"]
    begin_epoch()
    for cursor in (kept, lost, faber.get("/events?after=start")[0]["cursor"]):
        found = read_after(faber, cursor)
        assert found.status_code == (200 if cursor not in (kept, lost) else 400)


@pytest.fixture
def pooled():
    """This connection leads to a pooler, so it outlives a fail-over."""
    connection.ensure_connection()
    note_switch(connection.connection)
    connection.connection.may_change_server = True
    yield
    connection.connection.may_change_server = False


def test_behind_a_pooler_a_change_is_refused_until_the_switch_is_recorded(
    faber, pooled
):
    faber.invites(connectionId="a1")
    kept, lost = faber.get("/events")[0]["cursor"], lost_cursor()
    FeedSwitch.objects.update(timeline=0)
    refused = faber.send("post", "/connections", {"connectionId": "b1"})
    assert_error(refused, 503, "not_ready")
    assert FeedSwitch.objects.count() == 2
    faber.invites(connectionId="c1")
    assert_error(read_after(faber, lost), 400, "database_restored")
    assert ids(read_after(faber, kept).json()) == ["c1"]


def test_behind_a_pooler_a_reader_records_the_switch_itself(faber, pooled):
    faber.invites(connectionId="a1")
    lost = lost_cursor()
    FeedSwitch.objects.update(timeline=0)
    assert_error(read_after(faber, lost), 400, "database_restored")


def test_behind_a_pooler_a_spare_key_is_not_used_on_another_server(faber, pooled):
    key_generator.store_key(stored_spare_key()._asdict())
    spare = key_queue.lease_key(faber.tenant.pk, 1)
    FeedSwitch.objects.update(timeline=0)
    with pytest.raises(ServerChanged), transactions.atomic():
        key_pool.ReservedKey(spare, None).use()
    assert not SpareKey.objects.exists()


def test_a_fail_over_tells_each_organization_once(faber, acme):
    faber.invites(connectionId="a1")
    before = Event.objects.get().created_at
    connection.ensure_connection()
    note_switch(connection.connection)
    assert epochs.tell_organizations() == 0, "it is the first server"
    fail_over()
    late = TenantFactory()
    told = at_once(*[epochs.tell_organizations] * 4)
    while epochs.tell_organizations():
        pass
    assert max(told) == 2
    for one in (faber, acme):
        [event] = one.get("/events", messageType="database_restored")
        assert event["body"]["data"] == {"since": f"{before:%Y-%m-%dT%H:%M:%S.%fZ}"}
        assert event["objectType"] == "database"
    assert not Event.objects.filter(tenant=late.pk).exists()


def test_a_worker_that_is_killed_while_it_tells_leaves_the_others_to_the_next(
    faber, acme, monkeypatch
):
    fail_over()
    monkeypatch.setattr(epochs, "TOLD_AT_ONCE", 1)
    monkeypatch.setattr(epochs, "emit_event", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        epochs.tell_organizations()
    monkeypatch.undo()
    monkeypatch.setattr(epochs, "TOLD_AT_ONCE", 1)
    tasks.maintain()
    events = Event.objects.filter(type="database_restored")
    assert {event.tenant_id for event in events} == {faber.tenant.pk, acme.tenant.pk}
    assert events.count() == 2


def test_a_restore_is_told_too(faber):
    begin_epoch()
    tasks.maintain()
    assert faber.get("/events", messageType="database_restored")


def test_a_fail_over_forgets_spare_keys_as_well(faber):
    key_generator.store_key(stored_spare_key()._asdict())
    fail_over()
    assert not SpareKey.objects.exists()


def test_of_processes_that_connect_at_once_one_notes_the_switch(faber):
    fail_over()
    FeedSwitch.objects.update(timeline=0)

    def connect():
        connection.ensure_connection()
        note_switch(connection.connection)

    at_once(*[connect] * 6)
    numbers = FeedSwitch.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [0, 1, 2]


def test_spare_keys_are_forgotten_as_they_may_have_been_used(faber):
    key_generator.store_key(stored_spare_key()._asdict())
    begin_epoch()
    assert not SpareKey.objects.exists()


def test_readers_start_again_and_poll_on(faber):
    faber.invites(connectionId="a1")
    begin_epoch()
    from_start, from_now = Reader(faber, "after=start"), Reader(faber, "after=now")
    assert ids(from_start.all()) == ["a1"] and from_now.next() == []
    faber.invites(connectionId="b1")
    assert ids(from_start.all()) == ids(from_now.all()) == ["b1"]


def test_a_cursor_without_an_epoch_is_as_the_previous_version_wrote_it(faber):
    faber.invites(connectionId="a1")
    cursor = feed.cursor_for(feed.Position(5, "0"))
    assert feed.vault.unseal_text(cursor, feed.CURSOR_PURPOSE) == [5, "0"]


def test_events_of_another_server_stay_before_all_that_this_one_writes(faber):
    """Also when this server has once assigned as high numbers."""
    for name in ("a1", "b1"):
        faber.invites(connectionId=name)
    first, second = Event.objects.order_by("id")
    for number, event in ((2**60, first), (2**60 + 1, second)):
        Event.objects.filter(pk=event.pk).update(transaction_id=number)
    begin_epoch()
    numbers = Event.objects.order_by("id").values_list("transaction_id", flat=True)
    assert list(numbers) == [-1, 0]
    reader = Reader(faber, "limit=1")
    assert ids(reader.next()) == ["a1"]
    faber.invites(connectionId="new")
    assert ids(reader.all()) == ["b1", "new"]
    assert settled(faber.tenant)[0] == ["a1", "b1", "new"]
