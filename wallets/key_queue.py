"""The queue of the calls that need a spare key, over all processes and hosts.

Spare keys are given in turn by organization: nobody gets a second one while somebody
else waits for the first. Each call is a row. It waits in its thread as long as its
place in the queue is one of the first, or else is refused with 503 `key_not_ready` and
`Retry-After`. The row of a refused call keeps its place until the call is repeated, or
until some seconds after it should have been.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import BoundedSemaphore
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.db.models import Max, Q, QuerySet

from core.database import clock
from core.errors import Unavailable
from core.work import fair_pool
from core.work.notify import notify_worker
from wallets.models import KeyRequest, SpareKey

WAIT_SECONDS = 60.0  # for a key that is being generated
POLL_SECONDS = 0.5
# Longer than making a key and storing its definition take on a busy machine.
LEASE = timedelta(minutes=5)
MAX_REQUESTS = 3  # of one organization in the queue
# Threads of this process that may wait. They are threads for long cryptography; quick
# calls have others, which never wait for a key (agency/server/web.py).
MAX_THREADS = max(2, settings.WEB_THREADS // 2)
waiting_threads = BoundedSemaphore(MAX_THREADS)
# The first calls of the queue may wait: so many, in all processes of a host.
MAX_WAITING = MAX_THREADS * settings.WEB_PROCESSES
# A waiting call renews its row with each poll. The row of a killed process expires.
ALIVE = timedelta(seconds=10)
# For so long after `Retry-After` a refused call keeps its place.
GRACE = timedelta(seconds=5)
KEY_SECONDS = 3  # for a key to be generated: a low guess
MAX_RETRY_SECONDS = 60
RETENTION = timedelta(hours=1)  # of the rows that tell who got a key when
# The advisory lock of whoever looks at the queue. 0.1.0 holds another one, 0x61676E63,
# for minutes, while it makes keys.
QUEUE_LOCK = 0x6B657971
NEVER = datetime.min.replace(tzinfo=UTC)


class KeyNotReady(Unavailable):
    """503: the key is still being generated, or it is another call's turn."""

    def __init__(self, retry_after: int = 1) -> None:
        unit = "second" if retry_after == 1 else "seconds"
        super().__init__(
            "key_not_ready",
            "The key of this definition is being made. Send the request again in "
            f"{retry_after} {unit}.",
        )
        self.retry_after = retry_after


def lease_key(organization: UUID, seconds: float = WAIT_SECONDS) -> SpareKey:
    """Wait for the turn of this call, and lease a spare key to it.

    seconds: how long it waits at most, without a database connection. Call it outside
    of transactions. Raises KeyNotReady after that time and beyond the limits above.
    """
    request = join_queue(organization)
    found = take_turn(request)
    if isinstance(found, SpareKey):
        return found
    notify_worker("wallets.tasks.fill_key_pool")
    if not waiting_threads.acquire(blocking=False):
        raise refuse(request, found)
    try:
        deadline = time.monotonic() + seconds
        with fair_pool.idle_thread():
            while not isinstance(found, SpareKey):
                if found > MAX_WAITING or time.monotonic() > deadline:
                    raise refuse(request, found)
                close_old_connections()
                time.sleep(POLL_SECONDS)
                found = take_turn(request)
        return found
    finally:
        waiting_threads.release()


def join_queue(organization: UUID) -> KeyRequest:
    """Add a call to the queue, at the place of a refused one if there is one.

    Raises KeyNotReady if MAX_REQUESTS of the organization wait already.
    """
    with lock_queue():
        old = KeyRequest.objects.filter(alive_until__lt=clock.now() - RETENTION)
        old.delete()
        queue = read_queue()
        ours = [one for one in queue if one.organization == organization]
        for request in ours:
            if not request.is_waiting:
                renew(request)
                return request
        if len(ours) < MAX_REQUESTS:
            request = KeyRequest(organization=organization)
            request.alive_until = clock.now() + ALIVE
            request.save(force_insert=True)
            return request
    raise KeyNotReady(seconds_until_turn(len(queue) + 1))


def take_turn(request: KeyRequest) -> SpareKey | int:
    """Lease a spare key if it is this call's turn, or return its place in the queue.

    The first place is 1. With three spare keys, it is the turn of the first three.
    """
    with lock_queue():
        renew(request)
        place = read_queue().index(request) + 1
        # A process of 0.1.0 locks the key that it takes until it has stored it.
        rows = free_keys().select_for_update(skip_locked=True)
        free = list(rows.order_by("pk")[:place])
        if len(free) < place:
            return place
        [*_, spare] = free
        now = clock.now()
        spare.leased_until = now + LEASE
        spare.save(update_fields=["leased_until"])
        KeyRequest.objects.filter(pk=request.pk).update(served_at=now)
        return spare


def refuse(request: KeyRequest, place: int) -> KeyNotReady:
    """Let a call keep its place without waiting. Return the error for it."""
    seconds = seconds_until_turn(place)
    until = clock.now() + timedelta(seconds=seconds) + GRACE
    rows = KeyRequest.objects.filter(pk=request.pk)
    rows.update(is_waiting=False, alive_until=until)
    return KeyNotReady(seconds)


def seconds_until_turn(place: int) -> int:
    """Guess when the call at this place of the queue may wait."""
    seconds = 1 + KEY_SECONDS * max(0, place - MAX_WAITING)
    return min(seconds, MAX_RETRY_SECONDS)


def renew(request: KeyRequest) -> None:
    request.is_waiting = True
    request.alive_until = clock.now() + ALIVE
    request.save(update_fields=["is_waiting", "alive_until"])


@contextmanager
def lock_queue() -> Iterator[None]:
    """Run the block in a transaction, one at a time over all processes."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [QUEUE_LOCK])
        yield


def waiting_requests() -> QuerySet[KeyRequest]:
    """The calls that wait, and the refused ones that keep their place."""
    return KeyRequest.objects.filter(served_at=None, alive_until__gt=clock.now())


def read_queue() -> list[KeyRequest]:
    """Return the waiting requests in the order in which they get keys.

    First comes the first call of each organization, then the second ones, and so on;
    among these, the organization that got its last key the longest time ago.
    """
    served = KeyRequest.objects.exclude(served_at=None).order_by()
    last_served = dict(served.values_list("organization").annotate(Max("served_at")))
    calls: Counter[UUID] = Counter()
    ranks: list[tuple[int, datetime, UUID, KeyRequest]] = []
    for request in waiting_requests().order_by("pk"):
        organization = request.organization
        calls[organization] += 1
        last = last_served.get(organization, NEVER)
        ranks.append((calls[organization], last, request.pk, request))
    return [request for *_, request in sorted(ranks, key=lambda rank: rank[:3])]


def free_keys() -> QuerySet[SpareKey]:
    """The spare keys that are not leased."""
    now = clock.now()
    return SpareKey.objects.filter(Q(leased_until=None) | Q(leased_until__lt=now))
