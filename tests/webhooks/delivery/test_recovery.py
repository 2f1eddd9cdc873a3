"""Nothing falls between being disabled, enabled and recovered."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from connections.protocols import handshakes
from core.errors import Conflict, NotFound
from tests.support.races import during
from tests.support.webhook_receiver import days_pass, time_passes, worker_calls
from webhooks import retention, tasks
from webhooks.delivery import call, claim, health
from webhooks.delivery.endpoints import TRANSACTION_MARGIN
from webhooks.models import Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hook(registers):
    return registers(messageTypes=["connection_invited"])


LOST = timezone.now() - timedelta(days=3)


def enables_and_recovers(faber, hook, **body):
    faber.put(f"/webhooks/{hook['id']}/enable")
    faber.post(f"/webhooks/{hook['id']}/recover", body)


def worker_works():
    tasks.maintain()
    worker_calls()


def objects_of_calls(receiver):
    return [call.body["object_id"] for call in receiver.calls]


def test_what_waited_when_the_address_said_gone_is_recovered(faber, receiver, hook):
    """Each happened before the answer came that disabled the webhook."""
    for name in "abc":
        faber.invites(connectionId=name)
    receiver.answers(410)
    worker_calls()
    worker_works()
    receiver.calls.clear()
    receiver.answers(200)
    enables_and_recovers(faber, hook)
    worker_works()
    assert sorted(objects_of_calls(receiver)) == ["a", "b", "c"]


def test_the_event_that_failed_first_is_recovered(faber, receiver, hook, monkeypatch):
    """It is older than its call, and given up by the time the webhook is."""
    receiver.answers(500)
    faber.invites(connectionId="first")
    time_passes(minutes=10)
    Delivery.objects.update(created_at=timezone.now() - timedelta(minutes=10))
    worker_calls()
    Delivery.objects.update(attempts=len(Delivery.SCHEDULE))
    time_passes(seconds=7)
    worker_calls()
    first = Delivery.objects.get()
    assert first.status == "exhausted"
    monkeypatch.setattr(health, "DISABLE_AFTER", timedelta(0))
    faber.invites(connectionId="last")
    worker_calls()
    worker_works()
    webhook = Webhook.objects.get()
    assert (webhook.is_enabled, webhook.lost_since) == (False, first.created_at)
    receiver.calls.clear()
    receiver.answers(200)
    enables_and_recovers(faber, hook)
    worker_works()
    assert sorted(objects_of_calls(receiver)) == ["first", "last"]


def test_what_was_lost_before_is_recovered_too(faber, receiver, hook):
    Webhook.objects.update(created_at=timezone.now() - timedelta(days=9))
    receiver.answers(410)
    for cause in ("lost_since", "recover_since"):
        Webhook.objects.update(is_enabled=True, **{"lost_since": None, cause: LOST})
        faber.invites()
        worker_calls()
        webhook = Webhook.objects.get()
        assert (webhook.lost_since, webhook.recover_since) == (LOST, None)


def test_one_that_is_disabled_in_a_recovery_or_twice_keeps_what_was_lost(faber, hook):
    for since in (None, LOST):  # None: it was disabled before this was kept
        Webhook.objects.update(is_enabled=False, lost_since=since)
        faber.put(f"/webhooks/{hook['id']}/disable")
        assert Webhook.objects.get().lost_since == since
    Webhook.objects.update(is_enabled=True, lost_since=None, recover_since=LOST)
    faber.put(f"/webhooks/{hook['id']}/disable")
    assert Webhook.objects.get().lost_since == LOST
    enables_and_recovers(faber, hook)
    assert Webhook.objects.get().recover_since == LOST - TRANSACTION_MARGIN


def test_a_long_pause_is_recovered_from_its_beginning(faber, receiver, hook):
    """What waited when it was disabled, and what happened since."""
    faber.invites(connectionId="waited")
    faber.put(f"/webhooks/{hook['id']}/disable")
    faber.invites(connectionId="missed")
    tasks.maintain()
    days_pass(9)
    aged = timedelta(days=9)
    Webhook.objects.update(
        created_at=F("created_at") - aged, lost_since=F("lost_since") - aged
    )
    assert faber.get(f"/webhooks/{hook['id']}")["lostSinceUtc"]
    enables_and_recovers(faber, hook)
    worker_works()
    assert sorted(objects_of_calls(receiver)) == ["missed", "waited"]


@pytest.mark.parametrize("days, is_lost", [(4, True), (6, False)])
def test_what_was_lost_before_a_pause_is_as_without_it(faber, hook, days, is_lost):
    """Calls succeeded since then, so the webhook itself is not failing."""
    faber.invites()
    Delivery.objects.update(
        status="exhausted", created_at=in_days(-days), finished_at=in_days(-days)
    )
    faber.put(f"/webhooks/{hook['id']}/disable")
    lost_since = Webhook.objects.get().lost_since
    assert (lost_since == Delivery.objects.get().created_at) is is_lost


def test_a_forgotten_call_is_not_made_again(faber, receiver, hook, registers):
    """The event is kept for another address, which is still to be told."""
    registers(messageTypes=["connection_invited"], url=receiver.url + "/other")
    faber.invites()
    worker_calls()
    waiting = Delivery.objects.exclude(webhook=hook["id"])
    waiting.update(status="pending", due_at=in_days(9))
    Webhook.objects.update(created_at=in_days(-99))
    days_pass(31)
    retention.delete_old_events()
    assert Event.objects.count() == 1
    assert not Delivery.objects.filter(webhook=hook["id"]).exists()
    receiver.calls.clear()
    enables_and_recovers(faber, hook, since=in_days(-35).isoformat())
    worker_works()
    assert receiver.calls == []


def in_days(days):
    return timezone.now() + timedelta(days=days)


def test_what_a_killed_worker_had_claimed_is_closed_too(faber, receiver, hook):
    faber.invites()
    assert len(claim.claim_due(1, 1)) == 1
    faber.put(f"/webhooks/{hook['id']}/disable")
    tasks.maintain()
    assert Delivery.objects.get().status == "pending", "it may be at work"
    time_passes(seconds=61)
    tasks.maintain()
    [shown] = faber.get(f"/webhooks/{hook['id']}/deliveries")
    assert (shown["status"], shown["error"]) == ("Exhausted", "webhook_disabled")
    enables_and_recovers(faber, hook)
    worker_works()
    assert len(receiver.calls) == 1


def test_what_commits_after_the_recovery_began_is_recovered(faber, receiver, hook):
    """Its transaction saw the webhook disabled, and ends after the recovery."""
    wallet = faber.made.tenant.wallets.get()

    def recovery():
        enables_and_recovers(faber, hook)
        worker_works()

    faber.put(f"/webhooks/{hook['id']}/disable")
    during(lambda: handshakes.invite(wallet, "late"), recovery)
    assert receiver.calls == []
    worker_works()
    assert objects_of_calls(receiver) == ["late"]


def test_a_recovery_repeats_unconfirmed_once(faber, receiver, registers, impatient):
    receiver.silent = True
    hook = registers(messageTypes=["connection_invited"], retryUnconfirmed=False)
    faber.invites()
    worker_calls()
    enables_and_recovers(faber, hook, unconfirmed=True)
    for _ in range(3):
        worker_works()
    assert len(receiver.calls) == 2


def test_a_recovery_that_the_former_version_started_ends(faber, receiver, hook):
    """It kept the time of its start in `updated_at`, which every change sets now."""
    enables_and_recovers(faber, hook)
    before = timezone.now() - timedelta(minutes=2)
    Webhook.objects.update(recovery_started_at=None, updated_at=before)
    tasks.maintain()
    assert Webhook.objects.get().recover_since is None


def test_a_change_during_a_recovery_restarts_nothing_again(faber, receiver, hook):
    receiver.answers(500)
    faber.invites()

    def gives_up():
        Delivery.objects.update(attempts=len(Delivery.SCHEDULE))
        worker_calls()
        assert Delivery.objects.get().status == "exhausted"

    gives_up()
    enables_and_recovers(faber, hook)
    tasks.maintain()
    gives_up()
    path = f"/webhooks/{hook['id']}"
    for change in (
        lambda: faber.put(f"{path}/enable"),
        lambda: faber.call("patch", path, {"retryUnconfirmed": True}),
        lambda: faber.post(f"{path}/secret"),
    ):
        change()
        assert Webhook.objects.get().recover_since, "it still runs"
        tasks.maintain()
        assert Delivery.objects.get().status == "exhausted"


def test_a_bug_of_ours_holds_back_no_longer_than_a_failure(faber, receiver, registers):
    registers(messageTypes=["connection_invited", "connection_negotiating"])
    invited = faber.invites(connectionId="office")
    faber.hosts().accepts_invitation(invited["invitation"])
    Delivery.objects.exclude(event__object_id="office").delete()
    [head] = claim.claim_due(1, 1)
    head.webhook.secret = b"unreadable"
    call.make_call(head)
    rows = Delivery.objects.filter(pk=head.pk)
    assert rows.get().last_error == "internal_error"
    rows.update(due_at=in_days(9))
    time_passes(seconds=301)
    worker_calls()
    assert [call.body["sequence"] for call in receiver.calls] == [2]


def test_who_disables_or_recovers_from_an_old_copy_sees_what_happened(hook):
    copy, other = Webhook.objects.get(), Webhook.objects.get()
    Webhook.objects.update(recover_since=LOST)  # a recovery began meanwhile
    health.disable_by_hand(copy)
    assert Webhook.objects.get().lost_since == LOST
    with pytest.raises(Conflict, match="disabled"):
        other.start_recovery()
    assert Webhook.objects.get().recover_since is None


def test_who_sets_the_address_back_from_an_old_copy_starts_with_a_clean_record(hook):
    copy = Webhook.objects.get()
    Webhook.objects.get().change_settings(url="https://elsewhere.example")
    Webhook.objects.update(strikes=9)
    copy.change_settings(url=copy.url)
    assert Webhook.objects.get().strikes == 0


def test_one_that_was_deleted_meanwhile_is_not_found(hook):
    copy = Webhook.objects.get()
    Webhook.objects.all().delete()
    for act in (
        Webhook.enable, health.disable_by_hand, Webhook.change_settings,
        Webhook.start_recovery, Webhook.rotate_secret,
    ):  # fmt: skip
        with pytest.raises(NotFound):
            act(copy)
