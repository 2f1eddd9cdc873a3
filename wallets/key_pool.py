"""Definition keys made ahead of need: making one takes seconds, giving it new names takes none.

The keys of CL signatures do not depend on attribute names, only on their number. A spare key is
made with revocation; for a definition without, that part is left out.
"""

import copy
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
from agency.core.workers import notify_worker
from tenants import vault
from wallets import anoncreds
from wallets.anoncreds import Definition, common_view
from wallets.models import KeyDemand, SpareKey

REMEMBERED = timedelta(
    days=30
)  # how long a number of attributes is kept in the pool once asked for
WAIT_SECONDS = 60.0  # for a key that is being made
POLL_SECONDS = 0.5
LOCK = 0x61676E63  # the advisory lock of the one process that makes keys
ISSUER = "1" * 22
T = TypeVar("T")


def has(count: int) -> bool:
    """Whether there is a spare key for so many attributes."""
    return SpareKey.objects.filter(attributes=count).exists()


class Reserved(NamedTuple):
    """A key that left the pool: as it was there, and under the names of a schema."""

    parts: dict
    definition: Definition

    def give_back(self) -> None:
        """Into the pool again, as nothing came of it."""
        count = (
            len(self.parts["public"]["value"]["primary"]["r"]) - 1
        )  # less the link secret
        _store(count, self.parts)


def reserve(
    schema_id: str,
    schema: dict,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
    caller: object,
) -> Reserved:
    """A spare key under this schema's names, now the caller's; waits while one is being made.

    Outside of any transaction. Raises like `await_key`.
    """

    def taken() -> Reserved | None:
        with transaction.atomic():
            parts = _take(len(schema["attrNames"]))
        if parts is None:
            return None
        own = Definition(**copy.deepcopy(parts))
        return Reserved(
            parts, relabel(own, schema_id, schema, issuer_id, tag, support_revocation)
        )

    return _await(len(schema["attrNames"]), taken, caller)


def await_key(count: int, caller: object) -> None:
    """Returns when the pool holds a key for so many attributes.

    It is made by another process; meanwhile this thread waits without a database connection: one
    thread for each caller (an organization's id), a quarter of the web server's in all.
    Raises Unavailable("key_not_ready") if that is too many, or takes longer than WAIT_SECONDS.
    """
    _await(count, lambda: has(count) or None, caller)


def _await(count: int, look: Callable[[], T | None], caller: object) -> T:
    """What `look` finds."""
    ask_for(count)
    found = look()
    if found is not None:
        return found
    end = time.monotonic() + WAIT_SECONDS
    with waiters.admit(caller), fair_pool.idle_thread():
        # Not for those that are refused: they would flood the worker.
        notify_worker("wallets.tasks.fill_key_pool")
        while (found := look()) is None:
            if time.monotonic() > end:
                raise not_ready()
            close_old_connections()
            time.sleep(POLL_SECONDS)
    return found


def ask_for(count: int) -> None:
    """Has the pool hold a key for so many attributes from now on. Written once a day at most."""
    now = timezone.now()
    if KeyDemand.objects.filter(
        pk=count, asked_at__gt=now - timedelta(days=1)
    ).exists():
        return
    KeyDemand.objects.update_or_create(pk=count, defaults={"asked_at": now})


def not_ready() -> Unavailable:
    message = "The keys of this definition are being made. Send the request again in a minute."
    return Unavailable("key_not_ready", message)


class Waiters:
    """The callers for whom a thread of this process waits."""

    def __init__(self) -> None:
        self._callers: set[object] = set()
        self._lock = Lock()

    @contextmanager
    def admit(self, caller: object) -> Iterator[None]:
        with self._lock:
            is_full = len(self._callers) >= max(1, settings.WEB_THREADS // 4)
            if is_full or caller in self._callers:
                raise not_ready()
            self._callers.add(caller)
        try:
            yield
        finally:
            self._callers.discard(caller)


waiters = Waiters()


def take(
    schema_id: str, schema: dict, issuer_id: str, tag: str, support_revocation: bool
) -> Definition | None:
    """A spare key under this schema's names, or None. Leaves the pool when the caller commits."""
    parts = _take(len(schema["attrNames"]))
    if parts is None:
        return None
    return relabel(
        Definition(**parts), schema_id, schema, issuer_id, tag, support_revocation
    )


def _take(count: int) -> dict | None:
    spare = (
        SpareKey.objects.select_for_update(skip_locked=True)
        .filter(attributes=count)
        .first()
    )
    if spare is None:
        return None
    parts = vault.unseal(spare, "parts")
    spare.delete()
    return parts


def relabel(
    made: Definition,
    schema_id: str,
    schema: dict,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
) -> Definition:
    """The same key with other attribute names, in place."""
    public, private, proof = made
    primary = public["value"]["primary"]
    known = sorted(set(primary["r"]) - {"master_secret"})
    labels = [common_view(name) for name in schema["attrNames"]]
    renamed = dict(zip(known, labels, strict=True)) | {"master_secret": "master_secret"}
    primary["r"] = {renamed[label]: value for label, value in primary["r"].items()}
    proof["xr_cap"] = [[renamed[label], value] for label, value in proof["xr_cap"]]
    public |= {"schemaId": schema_id, "issuerId": issuer_id, "tag": tag}
    if not support_revocation:
        public["value"].pop("revocation", None)
        private["value"]["r_key"] = None
    return Definition(public, private, proof)


def wanted() -> list[int]:
    """The numbers of attributes for which a key is missing, each as often as it is: those that were
    asked for first, the latest of them before all."""
    since = timezone.now() - REMEMBERED
    asked = KeyDemand.objects.filter(asked_at__gt=since).order_by("-asked_at")
    each = {
        number: max(1, settings.KEY_POOL_SIZE)
        for number in asked.values_list("pk", flat=True)
    }
    each |= {
        n: settings.KEY_POOL_SIZE for n in settings.KEY_POOL_ATTRIBUTES if n not in each
    }
    have = list(SpareKey.objects.values_list("attributes", flat=True))
    return [n for n, size in each.items() for _ in range(size - have.count(n))]


def fill(report: Any = print) -> int:
    """Makes what is missing, one key at a time; 0 at once if another process is at it."""
    if not claim():
        return 0
    try:
        made = 0
        while missing := wanted():
            make(missing[0])
            made += 1
            report(f"made a key for {missing[0]} attributes")
        return made
    finally:
        release()


def make(count: int) -> SpareKey:
    names = [f"a{number}" for number in range(count)]
    schema = {"issuerId": ISSUER, "name": "spare", "version": "1", "attrNames": names}
    made = anoncreds.create_definition(
        f"{ISSUER}:2:spare:1", schema, ISSUER, "spare", True
    )
    return _store(count, made._asdict())


def _store(count: int, parts: dict) -> SpareKey:
    with transaction.atomic():
        spare = SpareKey(attributes=count)
        vault.seal(spare, "parts", parts)
        spare.save(force_insert=True)
    return spare


def claim() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def release() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
