"""`Idempotency-Key`: a repeated write has one effect and the same response.

The row of the key is committed in the transaction of the effect
(`IdempotentRequest.perform`). The sealed response is stored after messages to hosted
parties were delivered, because it shows their outcome. If a process was killed and
left a key without a response, the handler runs again without its effect, and the
response is rebuilt from the object. Errors leave no row, so their key may be used
again.

While a write runs, its process holds a lease of the key: a row of a table of its own,
by the clock of the database, taken and given back in statements of their own. So it
holds over machines, and behind a pooler that lends a session for one transaction. The
heartbeat of the process renews it, because a write may wait for minutes for a key or a
ledger, and the lease of a killed process should end soon.

The lease spares work and answers, but does not decide: a process that was stopped for
longer than its lease, or one of 0.1.0, which locks keys in another way, may handle the
same write. Only one of the two can commit the row of the key.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.apps import apps
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, models
from django.db.models.functions import Now
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.call import this_call
from core.database.base import count_rows, fetch_rows
from core.errors import (
    AgencyError,
    Conflict,
    InProgress,
    Invalid,
    Unprocessable,
)
from core.work import network_reads, transactions
from tenants import vault
from tenants.models import IdempotencyKey, IdempotencyLease

HEADER = "Idempotency-Key"
METHODS = ("POST", "PUT", "PATCH")
MAX_KEY_LENGTH = 255
PRINTABLE = re.compile(r"[\x20-\x7e]+")
RETENTION = timedelta(hours=24)
BATCH = 1000
# Several heartbeats, so that one late heartbeat loses no lease.
LEASE = timedelta(seconds=20)
COLUMNS = [str(field.column) for field in IdempotencyKey._meta.concrete_fields]
# Whether the lease is taken now, and the row of the key. If another process gave the
# lease back during this statement, the row may be missing: then the write of the row
# says that it was done.
TAKE_SQL = f"""
WITH lease AS (
    INSERT INTO tenants_idempotencylease AS held (id, holder, leased_until)
    VALUES (%s, %s, clock_timestamp() + %s)
    ON CONFLICT (id) DO UPDATE
    SET holder = excluded.holder, leased_until = excluded.leased_until
    WHERE held.leased_until < clock_timestamp()
    RETURNING id
)
SELECT EXISTS (SELECT FROM lease), {", ".join(f"known.{name}" for name in COLUMNS)}
FROM (SELECT) AS one LEFT JOIN tenants_idempotencykey AS known
    ON known.{{owner}} = %s AND known.key = %s
"""
GIVE_BACK_SQL = "DELETE FROM tenants_idempotencylease WHERE id = %s AND holder = %s"
STORE_SQL = f"""
WITH given_back AS ({GIVE_BACK_SQL})
UPDATE tenants_idempotencykey SET answer = %s, updated_at = %s WHERE id = %s
"""
RENEW_SQL = """
UPDATE tenants_idempotencylease SET leased_until = clock_timestamp() + %s
WHERE holder = ANY (%s)
"""
_holders: set[UUID] = set()  # of the leases that this process holds


class IdempotentRequest:
    """One write with a key.

    owner: `{"tenant": …}` or `{"provider": …}`; keys are unique per owner. operation:
    shown to support staff. fingerprint: see `request_fingerprint`.
    """

    def __init__(
        self,
        owner: dict[str, models.Model],
        key: str,
        operation: str,
        fingerprint: bytes,
    ) -> None:
        if len(key) > MAX_KEY_LENGTH or not PRINTABLE.fullmatch(key):
            message = (
                f"Give 1 to {MAX_KEY_LENGTH} printable ASCII characters, "
                "best a new UUID."
            )
            raise Invalid("invalid_idempotency_key", message, {HEADER: [message]})
        self.owner = owner
        self.key = key
        self.operation = operation
        self.fingerprint = fingerprint
        self.row: IdempotencyKey | None = None
        self.has_performed = False
        [(column, self.owner_id)] = ((name, one.pk) for name, one in owner.items())
        self.take_sql = TAKE_SQL.format(owner=f"{column}_id")
        digest = hashlib.sha256(f"{self.owner_id} {key}".encode()).digest()
        self.lease = UUID(bytes=digest[:16]), uuid7()  # its id and its holder

    def respond(self, handle: Callable[[], Any]) -> tuple[Any, bool]:
        """Return the body to send, and whether an earlier request had the effect.

        handle: the handler of the view, which returns the body. It calls perform() at
        most once. If an earlier request stored its response, `handle` is not called; if
        it stored only its key, `handle` is called, and perform() returns the object of
        that request. All of it is under the lease of the key, but outside of
        transactions: perform() has its own, and the response is stored after it. Raises
        409 `idempotency_in_progress`, 409 `already_created`, 422
        `idempotency_key_reused`, and what `handle` raises.
        """
        with self._hold_lease():
            is_known = self.row is not None
            if self.row:
                fingerprint = bytes(self.row.fingerprint)
                # Empty after a move: it was keyed by the other installation.
                if fingerprint and fingerprint != self.fingerprint:
                    message = (
                        "This Idempotency-Key came with another request. "
                        "Use a new key for this one."
                    )
                    raise Unprocessable("idempotency_key_reused", message)
                if self.row.shown_once:
                    raise already_created_error()
                if self.row.answer:
                    return vault.unseal(self.row, "answer")["body"], True
            try:
                body = handle()
            except AgencyError as error:
                # The handler has undone its effect before it raises a 4xx.
                if self.row and self.has_performed and error.status < 500:
                    self.row.delete()
                raise
            # Without a row: the handler has not called perform().
            self._store_response(self.row or self._claim_key(None, False), body)
            return body, is_known

    def perform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        prepare: Callable[[], Any] | None = None,
        shown_once: bool = False,
        **named: Any,
    ) -> Any:
        """Run the effect and store the key in one transaction.

        Return what the function returns for the arguments and `named`. If the key was
        stored before, return the object of the first request instead. prepare: called
        before the transaction, for work that takes long or commits by itself. Its
        result becomes the last argument without a name. shown_once: the response
        contains a secret, and is not stored.

        Outside of transactions. The function is called again after each network read
        that it needs. 409 `already_created` if the object of the first request was
        deleted.
        """
        assert not self.has_performed, "a handler calls perform() once"
        if self.row:
            result = self._object_made_by(self.row)
        else:
            prepared = [prepare()] if prepare else []

            def run() -> tuple[Any, IdempotencyKey]:
                # durable: never nested, so effect and key are committed at the end.
                with transactions.atomic(durable=True):
                    result = function(*arguments, *prepared, **named)
                    return result, self._claim_key(result, shown_once)

            result, self.row = network_reads.retry_transaction(run)
        self.has_performed = True
        return result

    @contextmanager
    def _hold_lease(self) -> Iterator[None]:
        """Lease the key, and read its row. In the block, current_key() returns it."""
        parameters = [*self.lease, LEASE, self.owner_id, self.key]
        [(is_taken, *row)] = fetch_rows(self.take_sql, parameters)
        if not is_taken:
            raise in_progress_error()
        if row[0] is not None:
            self.row = IdempotencyKey.from_db("default", COLUMNS, row)
        _, holder = self.lease
        this_call.idempotency_key = self.key
        _holders.add(holder)
        try:
            yield
        finally:
            this_call.idempotency_key = ""
            if holder in _holders:
                _holders.discard(holder)
                count_rows(GIVE_BACK_SQL, self.lease)

    def _claim_key(self, result: Any, shown_once: bool) -> IdempotencyKey:
        row = IdempotencyKey(key=self.key, operation=self.operation, **self.owner)
        row.fingerprint = self.fingerprint
        row.shown_once = shown_once
        if isinstance(result, models.Model):
            row.object_model = result._meta.label_lower
            row.object_id = str(result.pk)
        try:
            with transactions.atomic():
                row.save(force_insert=True)
        except IntegrityError:
            # The other one had no lease that counts here: see the top of this module.
            raise in_progress_error() from None
        return row

    def _object_made_by(self, row: IdempotencyKey) -> models.Model | None:
        if not row.object_model:
            return None
        made = apps.get_model(row.object_model).objects.filter(pk=row.object_id).first()
        if not made:
            raise already_created_error()
        return made

    def _store_response(self, row: IdempotencyKey, body: Any) -> None:
        """Store the response, and give the lease back, in one statement."""
        if row.shown_once:
            return
        answer = vault.sealed_value(row, "answer", {"body": body})
        count_rows(STORE_SQL, [*self.lease, answer, timezone.now(), row.pk])
        _holders.discard(self.lease[1])


def current_key() -> str:
    """The key of the write that this thread handles, or "".

    While it is handled, no other process has a lease of this key of this owner. So
    whatever was begun with it was begun by a call that has ended.
    """
    return this_call.idempotency_key


def request_fingerprint(
    method: str, address: str, is_literal: bool, data: Any, sees_values: bool = True
) -> bytes:
    """Return a keyed digest (32 bytes) of what must be equal in a repeated request.

    data: the parsed body. sees_values: whether the answer may have values.
    """
    if hasattr(data, "lists"):
        # For a form, use the fields: the boundary in its body is new in each request.
        fields = [
            [name, [digest_of_field(value) for value in values]]
            for name, values in data.lists()
        ]
        data = sorted(fields)
    dialect = "literal" if is_literal else "client"
    if not sees_values:
        dialect += " without values"
    return vault.keyed_digest(
        "\n".join([method, address, dialect, json.dumps(data, sort_keys=True)])
    )


def digest_of_field(value: Any) -> Any:
    """Return the value of a form field; for a file, the digest of its content."""
    if not isinstance(value, UploadedFile):
        return value
    content = hashlib.sha256()
    for chunk in value.chunks():
        content.update(chunk)
    value.seek(0)
    return {"sha256": content.hexdigest()}


def renew_leases() -> None:
    """Renew the leases that this process holds. The heartbeat calls it."""
    if holders := list(_holders):
        count_rows(RENEW_SQL, [LEASE, holders])


def in_progress_error() -> InProgress:
    message = (
        "A request with this Idempotency-Key is being processed. "
        "Send it again in a moment."
    )
    return InProgress("idempotency_in_progress", message)


def already_created_error() -> Conflict:
    message = (
        "An earlier request with this Idempotency-Key did this. "
        "Its response is not shown again."
    )
    return Conflict("already_created", message)


def delete_old_keys() -> int:
    """Delete keys past their retention, in batches. Return the number of rows.

    Deletes the leases of killed processes too.
    """
    IdempotencyLease.objects.filter(leased_until__lt=Now() - LEASE).delete()
    old = IdempotencyKey.objects.filter(created_at__lt=timezone.now() - RETENTION)
    oldest = old.order_by("created_at").values_list("pk", flat=True)
    deleted = 0
    while ids := list(oldest[:BATCH]):
        deleted += IdempotencyKey.objects.filter(pk__in=ids).delete()[0]
    return deleted
