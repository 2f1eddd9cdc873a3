"""After a restore, cursors of the time before are refused: they would skip events."""

from django.core.management import call_command

from tests.support.errors import assert_error
from tests.support.keys import stored_spare_key
from tests.webhooks.events.test_feed import Reader, ids, settled
from wallets import key_generator
from wallets.models import SpareKey
from webhooks.events import feed
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
