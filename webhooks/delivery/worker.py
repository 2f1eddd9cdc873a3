"""The worker's loop that calls webhooks."""

from collections import OrderedDict
from uuid import UUID

from django.conf import settings

from core import faults
from core.work.loop import ThreadedLoop
from core.work.shares import Limits
from webhooks.delivery.call import call_webhook
from webhooks.delivery.claim import claim_due, per_tenant_limit, per_webhook_limit
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import Outcome
from webhooks.delivery.recording import Finished, record_all

QUEUE_SECONDS = 1.0  # of calls are leased ahead
MAX_DEPTH = 32  # leased deliveries per call at a time
MEAN_WEIGHT = 0.2  # of the last call in the mean
MAX_KNOWN = 10_000  # webhooks and organizations whose mean is remembered
ALL_CALLS = UUID(int=0)  # the key of the mean of all calls


class CallTimes:
    """The mean duration of recent calls of this process.

    The keys are the ids of webhooks and of organizations, and ALL_CALLS.
    """

    def __init__(self) -> None:
        self._means: OrderedDict[UUID, float] = OrderedDict()

    def record(self, delivery: Delivery, seconds: float) -> None:
        """Count the duration of a call into the means that it belongs to."""
        for key in (delivery.webhook_id, delivery.tenant_id, ALL_CALLS):
            mean = self._means.pop(key, seconds)
            self._means[key] = mean + MEAN_WEIGHT * (seconds - mean)
        while len(self._means) > MAX_KNOWN:
            self._means.popitem(last=False)

    def depth(self, key: UUID) -> int:
        """How many deliveries to lease per call at a time.

        One, unless recent calls show that more of them are called within a second.
        """
        mean = self._means.get(key, QUEUE_SECONDS)
        return max(1, min(MAX_DEPTH, int(QUEUE_SECONDS / max(mean, 0.001))))


class DeliveryLoop(ThreadedLoop[Delivery, Outcome]):
    """Claims due deliveries, calls their webhooks in threads, records the outcomes.

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
            ("webhook", row.webhook_id): per_webhook_limit(),
            ("tenant", row.tenant_id): per_tenant_limit(),
        }

    def claim(self, at_work: list[Delivery]) -> list[Delivery]:
        """Lease as many due deliveries as there is room for.

        There is room for `depth` deliveries for each thread: where calls end quickly,
        several are leased ahead. claim_due() commits the leases.
        """
        free = self.threads * self.times.depth(ALL_CALLS) - len(at_work)
        slow = sum(delivery.webhook.is_slow for delivery in at_work)
        if free <= 0:
            return []
        rows = claim_due(
            free,
            slow_limit=max(0, per_webhook_limit() - slow),
            after=self.last_webhook_id,
            # Which leased rows are ours, of all that claim_due() counts.
            owners={delivery.lease_owner for delivery in at_work},
            depth=self.times.depth,
        )
        if rows:
            self.last_webhook_id = rows[-1].webhook_id
            faults.fault_point("after_claim")
        return rows

    def work(self, row: Delivery) -> Outcome:
        return call_webhook(row)

    def record(self, finished: list[Finished]) -> None:
        for delivery, outcome in finished:
            if outcome and outcome.was_made:
                self.times.record(delivery, outcome.seconds)
        record_all(finished)
