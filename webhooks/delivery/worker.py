"""The worker's loop that calls webhooks."""

from collections import OrderedDict
from uuid import UUID

from django.conf import settings

from core import faults
from core.work.loop import ThreadedLoop
from core.work.shares import Limits
from webhooks.delivery.call import call_webhook
from webhooks.delivery.claim import (
    Capacity,
    claim_due,
    group_calls,
    per_tenant_limit,
    slow_limit,
)
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import SLOW_CALL_SECONDS, Outcome, Result
from webhooks.delivery.recording import Finished, record_all

# Of calls are leased ahead: a few turns of the loop. The workers share an address that
# takes longer.
QUEUE_SECONDS = 0.2
MAX_DEPTH = 32  # leased deliveries per call at a time
MAX_LEASED = 512  # calls of this process
MAX_DELIVERIES = 4096  # of these calls
MEAN_WEIGHT = 0.2  # of the last call in the mean
# More calls at a time are of no use to a receiver that takes them one after the other:
# each takes longer. Up to this mean, or twice the quickest call, that does not matter.
QUICK_SECONDS = 0.1
FORGETTING = 1.001  # by which each call makes the quickest one longer
MAX_KNOWN = 10_000  # webhooks and organizations whose mean is remembered
ALL_CALLS = UUID(int=0)  # the key of the mean of all calls


class CallTimes:
    """The mean duration of recent calls of this process, and the quickest success.

    The keys are the ids of webhooks and of organizations, and ALL_CALLS.
    """

    def __init__(self) -> None:
        self._means: OrderedDict[UUID, float] = OrderedDict()
        self._quickest: OrderedDict[UUID, float] = OrderedDict()  # of webhooks

    def record(self, delivery: Delivery, seconds: float, succeeded: bool) -> None:
        """Count the duration of a call into the means that it belongs to."""
        for key in (delivery.webhook_id, delivery.tenant_id, ALL_CALLS):
            mean = self._means.pop(key, seconds)
            self._means[key] = mean + MEAN_WEIGHT * (seconds - mean)
        if succeeded:
            quickest = self._quickest.pop(delivery.webhook_id, seconds) * FORGETTING
            self._quickest[delivery.webhook_id] = min(quickest, seconds)
        for known in (self._means, self._quickest):
            while len(known) > MAX_KNOWN:
                known.popitem(last=False)

    def is_quick(self, webhook_id: UUID) -> bool:
        """Whether calls of a webhook take about as long as if there were only one."""
        mean = self._means.get(webhook_id, SLOW_CALL_SECONDS)
        quickest = self._quickest.get(webhook_id, 0.0)
        return mean < SLOW_CALL_SECONDS / 2 and mean <= max(QUICK_SECONDS, 2 * quickest)

    def depth(self, key: UUID) -> int:
        """How many deliveries to lease per call at a time.

        One, unless recent calls show that more of them are called in QUEUE_SECONDS.
        """
        mean = self._means.get(key, QUEUE_SECONDS)
        return max(1, min(MAX_DEPTH, int(QUEUE_SECONDS / max(mean, 0.001))))


class DeliveryLoop(ThreadedLoop[Delivery, Outcome]):
    """Claims due deliveries, calls their webhooks in threads, records the outcomes.

    A row of the loop is a call: the first of its deliveries (claim.group_calls()).
    Webhooks take turns. Deliveries that wait for their record block later ones of their
    objects.
    """

    def __init__(self) -> None:
        super().__init__("webhooks", settings.WEBHOOK_THREADS)
        self.times = CallTimes()
        self.last_webhook_id: UUID | None = None

    def line_of(self, row: Delivery) -> UUID:
        return row.webhook_id

    def limits_of(self, row: Delivery) -> Limits:
        return {
            ("webhook", row.webhook_id): row.webhook.share,
            ("tenant", row.tenant_id): per_tenant_limit(),
        }

    def claim(self, at_work: list[Delivery]) -> list[Delivery]:
        """Lease due deliveries of as many calls as there is room for.

        There is room for `depth` calls for each thread: where calls end quickly,
        several are leased ahead. claim_due() commits the leases.
        """
        most = max(self.threads, MAX_LEASED)
        capacity = Capacity(
            calls=min(self.threads * self.times.depth(ALL_CALLS), most),
            deliveries=MAX_DELIVERIES,
        )
        free = capacity.calls - len(at_work)
        leased = sum(len(delivery.of_call) for delivery in at_work)
        slow = sum(delivery.webhook.is_slow for delivery in at_work)
        if free <= 0 or leased >= capacity.deliveries:
            return []
        rows = claim_due(
            free,
            max_slow=max(0, slow_limit() - slow),
            after=self.last_webhook_id,
            # Which leased rows are ours, of all that claim_due() counts.
            owners={delivery.lease_owner for delivery in at_work},
            depth=self.times.depth,
            capacity=capacity,
        )
        if rows:
            self.last_webhook_id = rows[-1].webhook_id
            faults.fault_point("after_claim")
        return group_calls(rows)

    def work(self, row: Delivery) -> Outcome:
        return call_webhook(row)

    def record(self, finished: list[Finished]) -> None:
        for delivery, outcome in finished:
            if outcome and outcome.was_made:
                succeeded = outcome.result is Result.DELIVERED
                self.times.record(delivery, outcome.seconds, succeeded)
        growing = {
            delivery.webhook_id
            for delivery, _ in finished
            if delivery.webhook.is_full and self.times.is_quick(delivery.webhook_id)
        }
        deliveries = [
            (row, outcome) for first, outcome in finished for row in first.of_call
        ]
        record_all(deliveries, growing)
