"""Select the next deliveries to call, with fair shares for webhooks and tenants.

A share limits the calls that all workers make at the same time. A webhook begins with
a few, gets more while it answers well, and fewer when it does not
(health.extra_calls_after()). An address gets at most WEBHOOK_ADDRESS_CALLS, which all
organizations with that address divide, and each among its webhooks.

A worker may lease more deliveries than that, so that its threads need not wait for the
database: then its loop keeps to the share, and no other worker gets deliveries of the
same webhook or organization meanwhile. Where several workers have some, or several
webhooks with the same address, they lease no more than one share together. One
organization gets half of what a worker leases (`Capacity`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Case, Count, When

from core.database import clock
from webhooks.delivery import due
from webhooks.delivery.endpoints import SLOW_LIMIT, Webhook, max_share
from webhooks.delivery.models import MAX_TOGETHER, Delivery

# A receiver is the limit if deliveries have been due for so long while all calls run.
WAITED = timedelta(seconds=10)
MAX_READ = 2000  # deliveries in a claim, unless one call of each webhook has more
CLAIM_LOCK = 0x61676364  # the advisory lock of the one claim that runs at a time


def slow_limit() -> int:
    """Maximum concurrent calls of one worker to all slow webhooks together."""
    return max(1, settings.WEBHOOK_THREADS // 4)


def per_tenant_limit() -> int:
    """Maximum concurrent calls of one worker to all webhooks of one organization."""
    return max(1, settings.WEBHOOK_THREADS // 2)


class Capacity(NamedTuple):
    """How much a worker may lease at a time. An organization gets half of either."""

    calls: int
    deliveries: int


class Load:
    """Leased calls by webhook and by organization, and the room for more.

    A call has one delivery, or as many as its webhook takes together (`batch`).

    owners: the lease owners of the worker that claims. depth: how many times its share
    the worker may lease for a webhook or an organization, if no other worker has any.
    capacity: of the worker; None without a limit.
    """

    def __init__(
        self,
        owners: Collection[UUID | None],
        depth: Callable[[UUID], int],
        capacity: Capacity | None = None,
    ) -> None:
        self.depth = depth
        self.capacity = capacity
        # Of the worker that claims: by organization, and None for all.
        self.deliveries: Counter[UUID | None] = Counter()
        self.ours: Counter[UUID] = Counter()
        self.others: Counter[UUID] = Counter()
        self.of_address: Counter[str] = Counter()
        self.webhooks: dict[UUID, Webhook] = {}
        # By address: its webhooks, and the calls, of each organization.
        self.sharing: dict[str, Counter[UUID]] = {}
        self.of_tenant: dict[str, Counter[UUID]] = {}
        self.extra: Counter[UUID] = Counter()  # calls at a time, by organization
        columns = ("tenant", "url", "strikes", "extra_calls", "batch")
        rows = in_flight().values_list(
            "webhook", "lease_owner", *(f"webhook__{name}" for name in columns)
        )
        for pk, owner, *values, leased in rows.annotate(leased=Count("pk")):
            names = ("tenant_id", *columns[1:])
            webhook = Webhook(pk=pk, **dict(zip(names, values, strict=True)))
            self.add_webhooks([webhook])
            # Each call of several has an owner of its own (due.lease_all).
            calls = 1 if webhook.batch else leased
            count = self.ours if owner in owners else self.others
            count.update({pk: calls, webhook.tenant_id: calls})
            if owner in owners:
                self.deliveries.update({webhook.tenant_id: leased, None: leased})
            self.of_address[webhook.url] += calls
            self.of_tenant[webhook.url][webhook.tenant_id] += calls

    def add_webhooks(self, webhooks: Iterable[Webhook]) -> None:
        """Count webhooks that share in what their addresses may get."""
        for webhook in webhooks:
            if webhook.pk not in self.webhooks:
                self.of_tenant.setdefault(webhook.url, Counter())
                sharing = self.sharing.setdefault(webhook.url, Counter())
                sharing[webhook.tenant_id] += 1
                self.extra[webhook.tenant_id] += webhook.extra_calls
            self.webhooks[webhook.pk] = webhook

    def share_of(self, webhook: Webhook) -> int:
        """How many calls at a time it may get, beside others with its address."""
        webhooks = self.sharing[webhook.url][webhook.tenant_id]
        even_part = max(1, self.part_of_tenant(webhook) // webhooks)
        return min(webhook.own_share, even_part)

    def part_of_tenant(self, webhook: Webhook) -> int:
        """How many calls its organization gets there, with however many webhooks."""
        return max(1, max_share() // len(self.sharing[webhook.url]))

    def room_of_webhook(self, webhook: Webhook) -> int:
        """How many more calls may be leased for a webhook."""
        share = self.share_of(webhook)
        leased = self.leased_of(webhook)
        is_shared = self.sharing[webhook.url].total() > 1
        if webhook.is_slow or is_shared or webhook.batch:
            own = self.of_tenant[webhook.url][webhook.tenant_id]
            return min(
                share - leased,
                self.part_of_tenant(webhook) - own,
                max_share() - self.of_address[webhook.url],
            )
        return self.room_within(webhook.pk, share)

    def room_of_tenant(self, tenant: UUID) -> int:
        """How many more an organization may have: more where its addresses do well.

        Others find room in the worker at any time: it has half of that at most.
        """
        room = self.room_within(tenant, per_tenant_limit() + self.extra[tenant])
        if self.capacity is None:
            return room
        if self.deliveries[tenant] >= max(1, self.capacity.deliveries // 2):
            return 0
        return min(room, max(1, self.capacity.calls // 2) - self.ours[tenant])

    @property
    def is_full(self) -> bool:
        """Whether the worker has leased as many deliveries as it may."""
        if self.capacity is None:
            return False
        return self.deliveries[None] >= self.capacity.deliveries

    def room_within(self, key: UUID, share: int) -> int:
        """How many more calls a webhook or an organization may have.

        share: of calls at the same time. If no other process calls for it, this one may
        lease more ahead (`depth`).
        """
        if self.others[key]:
            return share - self.ours[key] - self.others[key]
        return share * self.depth(key) - self.ours[key]

    def take(self, webhook: Webhook) -> None:
        """Count a call that is leased now."""
        self.ours.update((webhook.pk, webhook.tenant_id))
        self.of_address[webhook.url] += 1
        self.of_tenant[webhook.url][webhook.tenant_id] += 1

    def leased_of(self, webhook: Webhook) -> int:
        return self.ours[webhook.pk] + self.others[webhook.pk]


def limited_by_receiver(webhook: Webhook | None = None) -> list[UUID]:
    """Webhooks with due deliveries that wait, as all calls of their share run.

    Not those with more leased than that: such calls end quickly, or wait for a thread.
    webhook: only this one. Else those of all organizations.
    """
    before = clock.now() - WAITED
    if webhook is None:
        waiting = due.webhooks_due_by(before)
    else:
        rows = Delivery.pending().filter(webhook=webhook, due_at__lte=before)
        waiting = [webhook.pk] if rows.exists() else []
    # Read in any case: a page takes as many statements with a full queue as without.
    load = Load(owners=(), depth=lambda key: 1)
    busy = [load.webhooks[pk] for pk in waiting if pk in load.webhooks]
    return [
        one.pk
        for one in busy
        if load.room_of_webhook(one) <= 0 and load.leased_of(one) <= load.share_of(one)
    ]


class Wanted(NamedTuple):
    """How many due deliveries of a webhook are worth reading."""

    webhook: Webhook
    number: int


def claim_due(
    limit: int,
    max_slow: int,
    after: UUID | None = None,
    owners: Collection[UUID | None] = (),
    depth: Callable[[UUID], int] = lambda key: 1,
    capacity: Capacity | None = None,
) -> list[Delivery]:
    """Lease due deliveries for up to `limit` calls, with webhooks and events loaded.

    group_calls() says which belong to one call.
    A webhook gets the events of one object in order: a failed delivery blocks the
    later ones of its object (`due.find_heads`). So no call has two of one object.
    max_slow: the maximum for slow webhooks. after: the webhook that was served last;
    the claim starts after it (round-robin by id). owners, depth, capacity: see `Load`.
    """
    with transaction.atomic():
        # One claim runs at a time, until the end of its transaction. Else two workers
        # could find the same organization below its share at the same time.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
        load = Load(owners, depth, capacity)
        webhooks = lock_webhooks(load, limit, max_slow, after)
        load.add_webhooks(webhooks)
        wanted = list_wanted(load, webhooks, limit)
        if not wanted:
            return []
        heads = due.find_heads(wanted)
        heads = leave_out_cut_retries(heads, wanted)
        rows = choose_within_limits(load, heads, limit, max_slow)
        return due.lease_all(rows) if rows else []


def list_wanted(load: Load, webhooks: list[Webhook], limit: int) -> list[Wanted]:
    """Return how many deliveries to read of which webhooks: those with room."""
    rooms = [(webhook, load.room_of_webhook(webhook)) for webhook in webhooks]
    rooms = [(webhook, room) for webhook, room in rooms if room > 0]
    even_part = -(-limit // len(rooms)) if rooms else 0
    most = MAX_READ // len(rooms) if rooms else 0
    wanted = []
    for webhook, room in rooms:
        webhook.share = load.share_of(webhook)
        calls = min(max(webhook.share, even_part), room)
        batch = webhook.batch or 1
        # A whole call at least: a failed one is not divided.
        number = min(calls * batch, max(most, batch))
        wanted.append(Wanted(webhook, number))
    return wanted


def lock_webhooks(
    load: Load, limit: int, max_slow: int, after: UUID | None
) -> list[Webhook]:
    """Lock and return webhooks that have due deliveries and are below their limits."""
    have_due = due.webhooks_due_by(clock.now() + clock.MARGIN)
    rows = Webhook.objects.filter(pk__in=have_due, is_enabled=True)
    known = load.webhooks.values()
    full_webhooks = [one.pk for one in known if load.room_of_webhook(one) <= 0]
    tenants = {one.tenant_id for one in known}
    full_tenants = [one for one in tenants if load.room_of_tenant(one) <= 0]
    rows = rows.exclude(pk__in=full_webhooks).exclude(tenant__in=full_tenants)
    if max_slow <= 0:
        rows = rows.exclude(strikes__gte=SLOW_LIMIT)
    round_robin = Case(When(pk__gt=after or UUID(int=0), then=0), default=1)
    rows = rows.order_by(round_robin, "pk")
    rows = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return list(rows[:limit])


def in_flight() -> "models.QuerySet[Delivery]":
    """Deliveries that any worker has leased now."""
    leased = Delivery.pending().exclude(lease_owner=None)
    return leased.filter(lease_until__gt=clock.now())


def are_of_one_call(first: Delivery, later: Delivery) -> bool:
    """Whether two due deliveries of a webhook may be in one call.

    Those whose call has failed are called again together, and with no others: they have
    the same `due_at` (recording.py). After MAX_TOGETHER failures each is called alone:
    one that the receiver refuses must not keep the others from it.
    """
    if first.attempts or later.attempts:
        are_together = first.attempts == later.attempts < MAX_TOGETHER
        return are_together and first.due_at == later.due_at
    return True


def leave_out_cut_retries(
    heads: list[Delivery], wanted: Sequence[Wanted]
) -> list[Delivery]:
    """Leave out the last ones of a webhook if others of their failed call were not read.

    The next claim begins with them.
    """
    numbers = {webhook.pk: number for webhook, number in wanted if webhook.batch}
    found: dict[UUID, list[Delivery]] = {}
    for head in heads:
        if head.webhook_id in numbers:
            found.setdefault(head.webhook_id, []).append(head)
    left_out: set[UUID] = set()
    for pk, rows in found.items():
        first, last = rows[0], rows[-1]
        is_cut = len(rows) >= numbers[pk] and last.attempts
        if is_cut and not are_of_one_call(first, last):
            left_out |= {row.pk for row in rows if are_of_one_call(row, last)}
    return [head for head in heads if head.pk not in left_out]


def choose_within_limits(
    load: Load, heads: list[Delivery], limit: int, max_slow: int
) -> list[Delivery]:
    """Return the first deliveries for whose calls there is room."""
    chosen: list[Delivery] = []
    calls: dict[UUID, list[Delivery]] = {}  # the last one of each webhook
    objects: set[UUID] = set()  # of the last call
    count = 0
    for delivery in heads:
        webhook = delivery.webhook
        call = calls.get(webhook.pk, [])
        most = webhook.batch or 1
        if call and len(call) < most and are_of_one_call(call[0], delivery):
            # After a resend, later ones of the object do not wait for the first.
            if delivery.object_key in objects:
                continue
            call.append(delivery)
        else:
            if count == limit or load.is_full:
                continue
            if load.room_of_tenant(webhook.tenant_id) <= 0:
                continue
            if load.room_of_webhook(webhook) <= 0:
                continue
            if webhook.is_slow:
                if max_slow <= 0:
                    continue
                max_slow -= 1
            load.take(webhook)
            count += 1
            calls[webhook.pk] = call = [delivery]
            objects = set()
        objects.add(delivery.object_key)
        load.deliveries.update((webhook.tenant_id, None))
        delivery.leader_id = call[0].pk
        # It has all calls that it may make at a time, and gets no more now.
        ends = count == limit or load.is_full
        ends = ends or load.room_of_webhook(webhook) <= 0
        ends = ends or load.room_of_tenant(webhook.tenant_id) <= 0
        has_all = load.leased_of(webhook) >= webhook.share == webhook.own_share
        webhook.is_full = has_all and ends and len(call) == most
        chosen.append(delivery)
    return chosen


def group_calls(rows: Sequence[Delivery]) -> list[Delivery]:
    """Return the first delivery of each call, which has the `others` of its call.

    rows: what a claim has leased.
    """
    calls: dict[UUID | None, list[Delivery]] = {}
    for row in rows:
        calls.setdefault(row.leader_id, []).append(row)
    firsts = []
    for call in calls.values():
        # By id, which begins with the time of the event: so again after a failure.
        first, *others = sorted(call, key=lambda row: row.pk)
        first.others = others
        for row in call:
            row.leader_id = first.pk
        firsts.append(first)
    return firsts
