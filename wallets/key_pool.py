"""A pool of definition keys that are generated in advance.

Generating a key takes seconds, relabelling one takes no time. The keys of CL
signatures do not depend on the names of attributes, only on their number. A spare key
is generated with revocation; for a definition without revocation, that part is
removed.

    reserve_key    for the local network: waits for a key and takes it at once
    await_key      before a job for a ledger: only waits
    take_key       in the transaction of that job: takes a key, or returns None
"""

import copy
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from agency.core import fair_pool
from agency.core.errors import Unavailable
from agency.core.notify import notify_worker
from agency.core.waiting import seconds_left
from tenants import vault
from wallets import anoncreds
from wallets.anoncreds import Definition, normalise_name
from wallets.models import KeyDemand, SpareKey

logger = logging.getLogger(__name__)
DEMAND_RETENTION = timedelta(days=30)  # a requested size stays in the pool this long
WAIT_SECONDS = 60.0  # for a key that is being generated
POLL_SECONDS = 0.5
# The advisory lock of the one process that generates keys: a number of no other lock.
FILLING_LOCK = 0x61676E63
SPARE_ISSUER = "1" * 22  # a placeholder for the issuer's DID
LINK_SECRET = "master_secret"  # the library's name for it among the attributes
T = TypeVar("T")


def has_spare_key(size: int) -> bool:
    """Return whether there is a spare key for `size` attributes."""
    return SpareKey.objects.filter(attributes=size).exists()


class ReservedKey(NamedTuple):
    """A key from the pool.

    parts: the key as it was in the pool. definition: the key with a schema's names.
    """

    parts: dict
    definition: Definition

    def give_back(self) -> None:
        """Return an unused key to the pool."""
        attributes = self.parts["public"]["value"]["primary"]["r"]
        # The link secret is among them, and is no attribute.
        store_parts(len(attributes) - 1, self.parts)


def not_ready_error() -> Unavailable:
    message = "The keys of this definition are being made. Try again in a minute."
    return Unavailable("key_not_ready", message)


class Waiters:
    """The callers whose requests wait in a thread of this process."""

    def __init__(self) -> None:
        self._callers: set[object] = set()
        self._lock = Lock()

    @contextmanager
    def admit(self, caller: object) -> Iterator[None]:
        with self._lock:
            is_full = len(self._callers) >= max(1, settings.WEB_THREADS // 4)
            if is_full or caller in self._callers:
                raise not_ready_error()
            self._callers.add(caller)
        try:
            yield
        finally:
            self._callers.discard(caller)


waiters = Waiters()


def reserve_key(
    schema_id: str,
    schema: dict,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
    caller: object,
) -> ReservedKey:
    """Take a spare key for this schema. Wait while one is being generated.

    Must be called outside of transactions. Raises Unavailable("key_not_ready") beyond
    the limits on threads of `await_key`, and after WAIT_SECONDS, however much time the
    whole call has left: on the local network it waits for nothing else.
    """
    size = len(schema["attrNames"])

    def take_parts() -> ReservedKey | None:
        with transaction.atomic():
            parts = pop_parts(size)
        if parts is None:
            return None
        definition = relabel_key(
            Definition(**copy.deepcopy(parts)),
            schema_id=schema_id,
            schema=schema,
            issuer_id=issuer_id,
            tag=tag,
            support_revocation=support_revocation,
        )
        return ReservedKey(parts, definition)

    return poll_pool(size, take_parts, caller)


def await_key(size: int, caller: object) -> None:
    """Wait until the pool contains a key for `size` attributes.

    Another process generates the key. Meanwhile this thread waits without a database
    connection. At most one thread for each caller (an organization's id) and a quarter
    of the web server's threads may wait. Raises Unavailable("key_not_ready") beyond
    these limits, after WAIT_SECONDS, and when the time of the whole call is over, which
    a ledger that is written to next shares (agency/core/waiting.py).
    """
    seconds = seconds_left(WAIT_SECONDS)
    poll_pool(size, lambda: has_spare_key(size) or None, caller, seconds)


def poll_pool(
    size: int,
    look_up: Callable[[], T | None],
    caller: object,
    seconds: float | None = None,
) -> T:
    """Call `look_up` until it returns a value other than None.

    seconds: how long at most; by default WAIT_SECONDS.
    """
    record_demand(size)
    found = look_up()
    if found is not None:
        return found
    deadline = time.monotonic() + (WAIT_SECONDS if seconds is None else seconds)
    with waiters.admit(caller), fair_pool.idle_thread():
        # Not before admit(): callers that it refuses would flood the worker.
        notify_worker("wallets.tasks.fill_key_pool")
        while (found := look_up()) is None:
            if time.monotonic() > deadline:
                raise not_ready_error()
            close_old_connections()
            time.sleep(POLL_SECONDS)
    return found


def record_demand(size: int) -> None:
    """Record that keys of this size are needed in the pool, at most once a day."""
    now = timezone.now()
    recent = KeyDemand.objects.filter(pk=size, asked_at__gt=now - timedelta(days=1))
    if not recent.exists():
        KeyDemand.objects.update_or_create(pk=size, defaults={"asked_at": now})


def take_key(
    schema_id: str, schema: dict, issuer_id: str, tag: str, support_revocation: bool
) -> Definition | None:
    """Return a spare key for this schema, or None.

    The key leaves the pool when the caller's transaction commits.
    """
    parts = pop_parts(len(schema["attrNames"]))
    if parts is None:
        return None
    return relabel_key(
        Definition(**parts),
        schema_id=schema_id,
        schema=schema,
        issuer_id=issuer_id,
        tag=tag,
        support_revocation=support_revocation,
    )


def pop_parts(size: int) -> dict | None:
    """Delete a spare key and return its parts, in the caller's transaction."""
    rows = SpareKey.objects.select_for_update(skip_locked=True)
    spare = rows.filter(attributes=size).first()
    if spare is None:
        return None
    parts = vault.unseal(spare, "parts")
    spare.delete()
    return parts


def relabel_key(
    key: Definition,
    schema_id: str,
    schema: dict,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
) -> Definition:
    """Set the names of a schema in a key, in place, and return the key."""
    public, private, proof = key
    primary = public["value"]["primary"]
    old_names = sorted(set(primary["r"]) - {LINK_SECRET})
    labels = [normalise_name(name) for name in schema["attrNames"]]
    new_names = dict(zip(old_names, labels, strict=True)) | {LINK_SECRET: LINK_SECRET}
    primary["r"] = {new_names[name]: value for name, value in primary["r"].items()}
    proof["xr_cap"] = [[new_names[name], value] for name, value in proof["xr_cap"]]
    public |= {"schemaId": schema_id, "issuerId": issuer_id, "tag": tag}
    if not support_revocation:
        public["value"].pop("revocation", None)
        private["value"]["r_key"] = None
    return Definition(public, private, proof)


def missing_keys() -> list[int]:
    """Return the sizes of the missing keys, each as often as it is missing.

    Sizes that were requested come first, the latest request before all others.
    """
    since = timezone.now() - DEMAND_RETENTION
    asked_for = KeyDemand.objects.filter(asked_at__gt=since).order_by("-asked_at")
    # Requested sizes are generated even if KEY_POOL_SIZE is 0.
    at_least_one = max(1, settings.KEY_POOL_SIZE)
    wanted = dict.fromkeys(asked_for.values_list("pk", flat=True), at_least_one)
    for size in settings.KEY_POOL_ATTRIBUTES:
        wanted.setdefault(size, settings.KEY_POOL_SIZE)
    spare = list(SpareKey.objects.values_list("attributes", flat=True))
    return [
        size
        for size, number in wanted.items()
        for _ in range(number - spare.count(size))
    ]


def fill_pool(report: Callable[[str], Any] = print) -> int:
    """Generate the missing keys, one at a time. Return how many.

    Return 0 at once if another process is generating keys.
    """
    if not lock_filling():
        return 0
    try:
        made = 0
        while missing := missing_keys():
            make_key(missing[0])
            made += 1
            logger.info("made a key for %s attributes", missing[0])
            report(f"made a key for {missing[0]} attributes")
        return made
    finally:
        unlock_filling()


def make_key(size: int) -> SpareKey:
    """Generate a definition key for `size` attributes, and store it in the pool."""
    names = [f"a{number}" for number in range(size)]
    schema = {
        "issuerId": SPARE_ISSUER,
        "name": "spare",
        "version": "1",
        "attrNames": names,
    }
    key = anoncreds.create_definition(
        schema_id=f"{SPARE_ISSUER}:2:spare:1",
        schema=schema,
        issuer_id=SPARE_ISSUER,
        tag="spare",
        support_revocation=True,
    )
    return store_parts(size, key._asdict())


def store_parts(size: int, parts: dict) -> SpareKey:
    with transaction.atomic():
        spare = SpareKey(attributes=size)
        vault.seal(spare, "parts", parts)
        spare.save(force_insert=True)
    return spare


def lock_filling() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [FILLING_LOCK])
        return bool(cursor.fetchone()[0])


def unlock_filling() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [FILLING_LOCK])
