"""The calls of webhooks that this process makes."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from agency.core import faults
from agency.core.dispatcher import Dispatcher
from webhooks.delivery import call
from webhooks.delivery.models import Delivery


class Claimer:
    """Claims due calls, the webhooks taking turns."""

    def __init__(self) -> None:
        self.last: UUID | None = None

    def claim(self, free: int, at_work: Sequence[Delivery]) -> list[Delivery]:
        hanging = sum(row.webhook.is_hanging for row in at_work)
        rows = call.claim(free, max(0, call.share() - hanging), self.last)
        if rows:
            self.last = rows[-1].webhook_id
            faults.fault_point("after_claim")
        return rows


def new_dispatcher() -> Dispatcher[Delivery]:
    return Dispatcher("webhooks", settings.WEBHOOK_THREADS, Claimer().claim, call.send)
