"""`Idempotency-Key`: a repeated write has one effect and the same response.

The row of the key is committed in the transaction of the effect
(`IdempotentRequest.perform`). The sealed response is stored after messages to hosted
parties were delivered, because it shows their outcome. If a process was killed and
left a key without a response, the handler runs again without its effect, and the
response is rebuilt from the object. Errors leave no row, so their key may be used
again. While a write runs, its process holds an advisory lock, which the database
releases when the process dies.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, connection, models
from django.utils import timezone

from core.call import current_call
from core.errors import (
    AgencyError,
    Conflict,
    InProgress,
    Invalid,
    Unprocessable,
)
from core.work import network_reads, transactions
from tenants import vault
from tenants.models import IdempotencyKey

HEADER = "Idempotency-Key"
METHODS = ("POST", "PUT", "PATCH")
MAX_KEY_LENGTH = 255
PRINTABLE = re.compile(r"[\x20-\x7e]+")
RETENTION = timedelta(hours=24)
BATCH = 1000


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

    def respond(self, handle: Callable[[], Any]) -> tuple[Any, bool]:
        """Return the body to send, and whether an earlier request had the effect.

        handle: the handler of the view, which returns the body. It calls perform() at
        most once. If an earlier request stored its response, `handle` is not called; if
        it stored only its key, `handle` is called, and perform() returns the object of
        that request. All of it is under the advisory lock of the key, but outside of
        transactions: perform() has its own, and the response is stored after it. Raises
        409 `idempotency_in_progress`, 409 `already_created`, 422
        `idempotency_key_reused`, and what `handle` raises.
        """
        with self._advisory_lock():
            self.row = IdempotencyKey.objects.filter(**self.owner, key=self.key).first()
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
    def _advisory_lock(self) -> Iterator[None]:
        """Lock the key. In the block, current_key() returns it."""
        [owner] = self.owner.values()
        name = f"{owner.pk} {self.key}"
        if not call_lock_function("pg_try_advisory_lock", name):
            raise in_progress_error()
        call = current_call()
        call.idempotency_key = self.key
        try:
            yield
        finally:
            call.idempotency_key = ""
            call_lock_function("pg_advisory_unlock", name)

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
            # The advisory lock was lost, or a pooler does not keep sessions.
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
        if not row.shown_once:
            answer = vault.sealed_value(row, "answer", {"body": body})
            rows = IdempotencyKey.objects.filter(pk=row.pk)
            rows.update(answer=answer, updated_at=timezone.now())


def current_key() -> str:
    """The key of the write that this thread handles, or "".

    While it is handled, no other process handles a write of this owner with this key.
    So whatever was begun with it was begun by a call that has ended.
    """
    return current_call().idempotency_key


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


def call_lock_function(function: str, name: str) -> bool:
    """Call a function for the session's advisory locks. Return its result."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", [name])
        return bool(cursor.fetchone()[0])


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
    """Delete keys past their retention, in batches. Return the number of rows."""
    old = IdempotencyKey.objects.filter(created_at__lt=timezone.now() - RETENTION)
    oldest = old.order_by("created_at").values_list("pk", flat=True)
    deleted = 0
    while ids := list(oldest[:BATCH]):
        deleted += IdempotencyKey.objects.filter(pk__in=ids).delete()[0]
    return deleted
