"""The worker's loop that calls webhooks."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from agency.core import faults
from agency.core.dispatcher import Dispatcher
from webhooks.delivery.call import make_call
from webhooks.delivery.claim import claim_due, per_webhook_limit
from webhooks.delivery.models import Delivery


class RoundRobin:
    """Claims due deliveries for one process, taking turns between webhooks."""

    def __init__(self) -> None:
        self.last_webhook_id: UUID | None = None

    def claim_following(
        self,
        free: int,
        at_work: Sequence[Delivery],
    ) -> list[Delivery]:
        """Claim up to `free` deliveries. at_work: those that this process calls now."""
        slow = sum(delivery.webhook.is_slow for delivery in at_work)
        slow_limit = max(0, per_webhook_limit() - slow)
        rows = claim_due(free, slow_limit, after=self.last_webhook_id)
        if rows:
            self.last_webhook_id = rows[-1].webhook_id
            faults.fault_point("after_claim")
        return rows


def new_dispatcher() -> Dispatcher[Delivery]:
    claim = RoundRobin().claim_following
    return Dispatcher("webhooks", settings.WEBHOOK_THREADS, claim, make_call)
