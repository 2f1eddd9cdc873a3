"""How many calls at a time an address gets: more while it answers well, and in turns."""

import time
from collections import Counter
from threading import Lock

import pytest
from django.db import transaction
from django.utils import timezone

from core.work.shares import Shares
from tenants import vault
from tests.factories import TenantFactory
from tests.support.races import at_once
from tests.support.webhook_receiver import receiving, worker_calls
from webhooks.delivery import claim, health, recording, worker
from webhooks.delivery.endpoints import SLOW_LIMIT, first_share, max_share
from webhooks.delivery.examples import send_example
from webhooks.delivery.outcomes import SLOW_CALL_SECONDS, Outcome, Result
from webhooks.delivery.worker import CallTimes, DeliveryLoop
from webhooks.models import Attempt, Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
CROWD = 50
MANY = 500


@pytest.fixture(autouse=True)
def threads(loopback, settings):
    settings.WEBHOOK_THREADS = 32
    settings.WEBHOOK_ADDRESS_CALLS = 12


def register(name, url):
    """An organization with a webhook."""
    tenant = TenantFactory(name=name)
    vault.create_data_key(tenant)
    return Webhook.register(tenant, url, Webhook.Type.NOTIFICATION, "literal")


def send(webhook, count):
    with transaction.atomic():
        for _ in range(count):
            send_example(webhook, "verification")


class Meter:
    """Takes so many seconds for each call, and counts those at the same time."""

    def __init__(self, receiver, seconds):
        self.lock, self.running, self.most, self.seconds = Lock(), 0, 0, seconds
        receiver.meet = self.meet

    def meet(self, call):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(self.seconds)
        with self.lock:
            self.running -= 1


def outcome(result=Result.DELIVERED, seconds=0.01):
    return Outcome(result, timezone.now(), seconds)


def test_an_address_that_answers_well_gets_more_up_to_its_most(receiver):
    meter = Meter(receiver, 0.05)
    webhook = register("Faber", receiver.url)
    send(webhook, 150)
    at_once(*[lambda: DeliveryLoop().run()] * 2)
    webhook.refresh_from_db()
    assert webhook.own_share == max_share() == 12
    assert first_share() < meter.most <= 12
    ids = {call.headers["webhook-id"] for call in receiver.calls}
    assert len(ids) == len(receiver.calls) == Attempt.objects.count() == 150


def test_an_address_with_little_to_do_keeps_its_first_share(receiver):
    webhook = register("Faber", receiver.url)
    for _ in range(10):
        send(webhook, 2)
        worker_calls()
    webhook.refresh_from_db()
    assert webhook.extra_calls == 0


def test_one_that_takes_calls_one_after_the_other_soon_gets_no_more(
    receiver, monkeypatch, settings
):
    """Each call would take longer, and none would end sooner."""
    settings.WEBHOOK_ADDRESS_CALLS = 64
    monkeypatch.setattr(worker, "QUICK_SECONDS", 0.0)
    turn = Lock()

    def meet(call):
        with turn:
            time.sleep(0.02)

    receiver.meet = meet
    webhook = register("Faber", receiver.url)
    send(webhook, 80)
    worker_calls()
    webhook.refresh_from_db()
    assert webhook.own_share <= 3 * first_share()


@pytest.mark.parametrize(
    "bad",
    [
        outcome(Result.FAILED),
        outcome(Result.THROTTLED),
        outcome(Result.UNCONFIRMED),
        outcome(seconds=SLOW_CALL_SECONDS),
    ],
)
def test_each_bad_answer_halves_what_it_has_earned(receiver, bad):
    webhook = register("Faber", receiver.url)
    Webhook.objects.update(extra_calls=8)
    send(webhook, 6)
    for left in (4, 2, 1, 0, 0):
        [row] = claim.claim_due(1, 1)
        recording.record_outcomes([(row, bad)], {webhook.pk})
        webhook.refresh_from_db()
        assert webhook.extra_calls == left
        Delivery.objects.exclude(attempts=0).update(status="exhausted")
        Webhook.objects.update(strikes=0)
    [row] = claim.claim_due(1, 1)
    recording.record_outcomes([(row, outcome())], {webhook.pk})
    webhook.refresh_from_db()
    assert webhook.extra_calls == 1, "and it may earn it again"


def test_a_slow_one_has_one_call_whatever_it_had_earned():
    webhook = Webhook(extra_calls=8, strikes=SLOW_LIMIT)
    assert webhook.own_share == 1
    assert Webhook(extra_calls=8).own_share == 12
    assert Webhook(extra_calls=100).own_share == 12, "the setting may have changed"


def test_a_setting_that_became_smaller_takes_nothing_from_the_row():
    webhook = Webhook(extra_calls=100)
    assert health.extra_calls_after(webhook, [outcome()], True) == 100
    assert health.extra_calls_after(webhook, [outcome()], False) == 100


def test_what_is_quick_is_known_by_the_quickest_success():
    row, times = Delivery(webhook=Webhook()), CallTimes()
    assert not times.is_quick(row.webhook_id)
    times.record(row, 0.5, True)
    assert times.is_quick(row.webhook_id)
    for _ in range(40):
        times.record(row, 1.4, True)
    assert not times.is_quick(row.webhook_id), "it takes twice as long"
    for _ in range(40):
        times.record(row, 0.01, False)
    assert times.is_quick(row.webhook_id)
    for _ in range(2000):
        times.record(row, 2.0, True)
    assert times.is_quick(row.webhook_id), "it has become slower once and for all"
    for _ in range(2000):
        times.record(row, 3.0, True)
    assert not times.is_quick(row.webhook_id), "this takes too long in any case"


def test_fifty_organizations_divide_one_address(receiver):
    """Faber was first, has the most to say, and had earned the whole address."""
    faber = register("Faber", receiver.url)
    send(faber, 60)
    Webhook.objects.update(extra_calls=8)
    crowd = [register(f"Other {number}", receiver.url) for number in range(CROWD - 1)]
    assert len(claim.claim_due(6, 4)) == 6
    for other in crowd:
        send(other, 2)
    after, order = None, []
    waiting = Delivery.pending().exclude(webhook=faber)
    while waiting.exists():
        rows = claim.claim_due(MANY, 4, after, depth=lambda key: 32)
        assert claim.in_flight().count() <= max_share()
        after = rows[-1].webhook_id if rows else after
        order += [row.webhook_id for row in rows]
        # The calls that began first end first.
        for row in claim.in_flight().order_by("lease_until", "pk")[:6]:
            assert row.finish()
    got = Counter(order[: 2 * CROWD])
    assert set(got) >= {other.pk for other in crowd}, "each has been called"
    assert got[faber.pk] <= 4


def test_a_crowd_at_one_address_waits_for_no_backlog(receiver):
    """Two workers make the calls; never more than the address may have."""
    meter = Meter(receiver, 0.01)
    faber = register("Faber", receiver.url)
    send(faber, 200)
    crowd = [register(f"Other {number}", receiver.url) for number in range(CROWD - 1)]
    for other in crowd:
        send(other, 2)
    at_once(*[lambda: DeliveryLoop().run()] * 2)
    assert meter.most <= max_share()
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}
    began = Attempt.objects.order_by("started_at")
    whose = list(began.values_list("delivery__webhook", flat=True))
    last_other = max(n for n, pk in enumerate(whose) if pk != faber.pk)
    assert last_other < 98 + 100, "the crowd was done long before Faber"


def test_another_address_has_threads_while_one_that_had_earned_many_hangs(
    receiver, settings
):
    settings.WEBHOOK_ADDRESS_CALLS = 64
    with receiving() as hanging:
        slow = register("Faber", hanging.url)
        Webhook.objects.update(extra_calls=60)
        send(slow, 60)
        rows = claim.claim_due(MANY, 4, depth=lambda key: 32)
        assert {row.webhook.share for row in rows} == {64}
        loop, shares = DeliveryLoop(), Shares()
        started = 0
        while shares.have_room(loop.limits_of(rows[0])):
            shares.take(loop.limits_of(rows[0]))
            started += 1
        assert started == settings.WEBHOOK_THREADS // 2


def test_an_organization_leaves_half_of_a_worker_to_others(receiver):
    """However quick its receivers are, and however many calls each of them gets."""
    busy = register("Faber", receiver.url)
    send(busy, 60)
    with receiving() as elsewhere:
        other = register("Other", elsewhere.url)
        room = claim.Capacity(calls=40, deliveries=1000)
        rows = claim.claim_due(40, 4, depth=lambda key: 32, capacity=room)
        assert len(rows) == 20
        owners = {row.lease_owner for row in rows}
        assert rows[-1].webhook.is_full, "it may grow: it has used up what it may have"
        send(other, 5)
        more = claim.claim_due(20, 4, None, owners, lambda key: 32, room)
        assert {row.webhook_id for row in more} == {other.pk} and len(more) == 5


def test_what_a_worker_leases_is_bounded_by_deliveries_too(receiver):
    busy = register("Faber", receiver.url)
    send(busy, 30)
    with receiving() as elsewhere:
        other = register("Other", elsewhere.url)
        send(other, 30)
        Webhook.objects.update(batch=5)
        room = claim.Capacity(calls=512, deliveries=20)
        rows = claim.claim_due(512, 4, capacity=room)
        assert Counter(row.webhook_id for row in rows) == {busy.pk: 10, other.pk: 10}
        owners = {row.lease_owner for row in rows}
        assert claim.claim_due(510, 4, owners=owners, capacity=room) == []


def test_a_claim_reads_evenly_and_whole_calls(receiver, monkeypatch):
    monkeypatch.setattr(claim, "MAX_READ", 12)
    webhooks = [register(f"Other {number}", receiver.url) for number in range(3)]
    load = claim.Load((), lambda key: 1)
    load.add_webhooks(webhooks)
    assert [one.number for one in claim.list_wanted(load, webhooks, 100)] == [4, 4, 4]
    for webhook in webhooks:
        webhook.batch = 3
    assert [one.number for one in claim.list_wanted(load, webhooks, 100)] == [4, 4, 4]
    webhooks[0].batch = 100
    assert [one.number for one in claim.list_wanted(load, webhooks, 100)] == [100, 4, 4]


def test_an_address_is_divided_by_organizations_and_then_by_webhooks(
    receiver, settings
):
    settings.WEBHOOK_THREADS = 200
    first = register("Faber", receiver.url)
    many = [first] + [
        Webhook.register(first.tenant, receiver.url, Webhook.Type.ZAPIER, "literal")
        for _ in range(9)
    ]
    one = register("Other", receiver.url)
    for webhook in [*many, one]:
        send(webhook, 12)
    Webhook.objects.update(extra_calls=8)
    rows = claim.claim_due(MANY, 4)
    got = Counter(row.webhook.tenant_id for row in rows)
    assert got == {first.tenant_id: 6, one.tenant_id: 6}


def test_rows_that_are_leased_ahead_are_no_fault_of_the_receiver(receiver):
    webhook = register("Faber", receiver.url)
    send(webhook, 20)
    Delivery.objects.update(due_at=timezone.now() - 2 * claim.WAITED)
    assert len(claim.claim_due(12, 4, depth=lambda key: 3)) == 12
    assert claim.limited_by_receiver() == claim.limited_by_receiver(webhook) == []
    for row in claim.in_flight()[:8]:
        row.finish()
    assert claim.limited_by_receiver() == [webhook.pk]


def test_what_a_webhook_earns_is_no_change_of_its_owner(receiver):
    webhook = register("Faber", receiver.url)
    before = webhook.updated_at
    Webhook.objects.update(strikes=1)
    send(webhook, 1)
    [row] = claim.claim_due(1, 1)
    recording.record_outcomes([(row, outcome())], {webhook.pk})
    webhook.refresh_from_db()
    earned = (webhook.extra_calls, webhook.strikes, webhook.has_answered)
    assert earned == (1, 0, True)
    assert webhook.updated_at == before
