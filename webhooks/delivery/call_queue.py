"""The leased deliveries of this process, and which of them is called next."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from datetime import timedelta
from threading import Lock
from uuid import UUID

from django.utils import timezone

from core.work.leases import LEASE
from webhooks.delivery.claim import per_tenant_limit, per_webhook_limit
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import Outcome

# A delivery that has waited longer goes back to the table. By then its webhook may
# have been changed, and there must be time for the call before its lease ends.
MAX_WAIT = timedelta(seconds=5)
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


class CallQueue:
    """Leased deliveries: they wait, are called, and wait for their outcome's record.

    It keeps the calls of each webhook and of each organization within their shares.
    Webhooks take turns. Safe for threads.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = Lock()
        self._waiting: OrderedDict[UUID, deque[Delivery]] = OrderedDict()
        self._calling: dict[UUID, Delivery] = {}
        self._calls: Counter[UUID] = Counter()  # by webhook and by organization
        self._finished: list[tuple[Delivery, Outcome | None]] = []

    def add(self, rows: Iterable[Delivery]) -> None:
        with self._lock:
            for row in rows:
                self._waiting.setdefault(row.webhook_id, deque()).append(row)

    def start_next(self) -> Delivery | None:
        """Return a delivery to call now, or None if there is none within its share."""
        self.return_waiting()
        with self._lock:
            if len(self._calling) == self._threads:
                return None
            heads = (rows[0] for rows in self._waiting.values())
            within_share = (
                row
                for row in heads
                if self._calls[row.webhook_id] < per_webhook_limit()
                and self._calls[row.tenant_id] < per_tenant_limit()
            )
            row = next(within_share, None)
            if row is None:
                return None
            self._waiting[row.webhook_id].popleft()
            self._waiting.move_to_end(row.webhook_id)
            if not self._waiting[row.webhook_id]:
                del self._waiting[row.webhook_id]
            self._calling[row.pk] = row
            self._calls.update((row.webhook_id, row.tenant_id))
            return row

    def finish(self, row: Delivery, outcome: Outcome) -> None:
        """Add what came of a call."""
        with self._lock:
            del self._calling[row.pk]
            self._calls -= Counter((row.webhook_id, row.tenant_id))
            self._finished.append((row, outcome))

    def return_waiting(self, even_new: bool = False) -> None:
        """Finish deliveries that have waited too long, without a call."""
        soonest_end = timezone.now() + LEASE - MAX_WAIT
        with self._lock:
            for webhook_id, rows in list(self._waiting.items()):
                while rows and (
                    even_new
                    or not rows[0].lease_until
                    or rows[0].lease_until < soonest_end
                ):
                    self._finished.append((rows.popleft(), None))
                if not rows:
                    del self._waiting[webhook_id]

    def take_finished(self) -> list[tuple[Delivery, Outcome | None]]:
        """Return what was not recorded yet, and forget it."""
        with self._lock:
            finished = self._finished
            self._finished = []
            return finished

    def at_work(self) -> list[Delivery]:
        """The deliveries whose outcome is not recorded yet."""
        with self._lock:
            waiting = [row for rows in self._waiting.values() for row in rows]
            finished = [row for row, _ in self._finished]
            return [*waiting, *self._calling.values(), *finished]

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)
