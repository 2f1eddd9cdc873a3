"""How people are found by their names, which are sealed.

Of each word of a name, the first 2 to 10 letters are stored as digests, keyed by the
organization: whoever has the database sees which words of one organization begin alike,
and no more. They are rows of their own, written in the transaction that names the
person, and go with the name, the credential or the organization.
"""

import hmac
import os
from collections.abc import Iterable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Self, cast
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models, transaction
from django.db.models import QuerySet

from core.database.compiled_sql import Row
from core.errors import Conflict
from core.text.folding import folded_words, joined_words
from tenants import vault
from tenants.models import Record, Tenant

MIN_LETTERS, MAX_LETTERS = 2, 10  # of a word, that are compared
KEY_BYTES, DIGEST_BYTES = 32, 8
MAX_KEYS = 10_000  # that a process remembers
MAX_FOUND = 10_000  # people, the newest ones

_keys: dict[UUID, bytes] = {}  # by organization; none ever changes
_lock = Lock()


class NameKey(Record):
    """The key of an organization's digests of names, sealed by its data key.

    filled_to: the last credential of before there were digests that has its own by now.
    filled_at: when all had. checks_…: the same of verifications. See name_filling.py.
    """

    tenant = models.OneToOneField(
        Tenant, on_delete=models.CASCADE, db_constraint=False, related_name="name_key"
    )
    key = models.BinaryField()
    filled_to = models.UUIDField(null=True)
    filled_at = models.DateTimeField(null=True)
    checks_filled_to = models.UUIDField(null=True)
    checks_filled_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"name key of {self.tenant_id}"

    @classmethod
    def of(cls, tenant_id: UUID) -> Self:
        """The row of an organization, made in this transaction if there was none."""
        rows = cls.objects.filter(tenant_id=tenant_id)
        if found := rows.first():
            return found
        row = cls(tenant_id=tenant_id)
        vault.seal(row, "key", os.urandom(KEY_BYTES).hex())
        # Another transaction may be faster: its key is the one.
        cls.objects.bulk_create([row], ignore_conflicts=True)
        return rows.get()

    def unsealed_key(self) -> bytes:
        return bytes.fromhex(vault.unseal(self, "key"))


class RowDigests(Row):
    """The digests of the name that one row has. The primary key is that row.

    The database deletes it with that.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    digests = ArrayField(models.BigIntegerField())

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def store(cls, tenant: Tenant, names: Mapping[UUID, str]) -> None:
        """Store those of names by the ids of their rows, in the caller's transaction.

        None of what names nobody, and none if the organization has switched it off.
        """
        if not (tenant.name_search and any(names.values())):
            return
        key, model = key_of(tenant.pk), cast(Any, cls)
        rows = [
            model(pk=pk, tenant_id=tenant.pk, digests=digests)
            for pk, name in names.items()
            if (digests := digests_of(key, beginnings_of(name)))
        ]
        model.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["pk"],
            update_fields=["digests"],
        )


class NameDigests(RowDigests):
    """Those of the name on a credential."""

    credential = models.OneToOneField(
        "credentials.Credential",
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="name_digests",
    )

    class Meta:
        indexes = [
            # Without a list of pending rows, which each search would read.
            GinIndex(
                fields=["digests"], fastupdate=False, name="credential_by_name_digest"
            )
        ]


def beginnings_of(name: str) -> list[str]:
    """The first 2 to 10 letters of each word, folded."""
    words = dict.fromkeys([*folded_words(name), *joined_words(name)])
    beginnings = (
        word[:length]
        for word in words
        for length in range(MIN_LETTERS, min(len(word), MAX_LETTERS) + 1)
    )
    return list(dict.fromkeys(beginnings))


def searched_beginnings(text: str) -> list[str]:
    """What a name must have for this text to find it. Nothing of a text too short."""
    for words in (folded_words(text), joined_words(text)):
        if found := [word[:MAX_LETTERS] for word in words if len(word) >= MIN_LETTERS]:
            return found
    return []


def digests_of(key: bytes, beginnings: Iterable[str]) -> list[int]:
    """Sorted: else their order tells the length of each word."""
    return sorted(
        int.from_bytes(
            hmac.digest(key, beginning.encode(), "sha256")[:DIGEST_BYTES], signed=True
        )
        for beginning in beginnings
    )


def key_of(tenant_id: UUID) -> bytes:
    """The key of an organization's digests, made in this transaction if there is none."""
    return find_key(tenant_id) or _read_key(NameKey.of(tenant_id))


def find_key(tenant_id: UUID) -> bytes | None:
    """The key of an organization's digests, if it has one. A process reads it once."""
    if key := _keys.get(tenant_id):
        return key
    row = NameKey.objects.filter(tenant_id=tenant_id).first()
    return _read_key(row) if row else None


def _read_key(row: NameKey) -> bytes:
    key = row.unsealed_key()
    # Not of a transaction that is rolled back, with which a new key goes.
    transaction.on_commit(partial(_remember, row.tenant_id, key))
    return key


def _remember(tenant_id: UUID, key: bytes) -> None:
    with _lock:
        if len(_keys) >= MAX_KEYS:
            _keys.clear()
        _keys[tenant_id] = key


def forget_keys() -> None:
    _keys.clear()


def find_named(
    tenant: Tenant,
    text: str,
    limit: int = MAX_FOUND,
    of: type[RowDigests] = NameDigests,
) -> QuerySet[Any]:
    """The ids of an organization's newest rows whose names have these words.

    of: the digests of these rows. Each word of the text is the beginning of a word of
    the name, in any order; letters after the tenth are not compared. Nothing is found by
    a text without a word of MIN_LETTERS letters. 409 `name_search_off`.
    """
    if not tenant.name_search:
        raise Conflict(
            "name_search_off",
            "The organization has switched off that people are found by their names. "
            "Its settings in the studio switch it on.",
        )
    rows = of._default_manager.filter(tenant=tenant)
    beginnings = searched_beginnings(text)
    if beginnings and (key := find_key(tenant.pk)):
        wanted = digests_of(key, beginnings)
        field = of._meta.get_field("digests")
        # Of a plain list Django makes integers of 32 bits, which cuts the digests.
        rows = rows.filter(digests__contains=models.Value(wanted, field))
    else:
        rows = rows.none()
    # With a limit PostgreSQL reads these first, by their index.
    return rows.order_by("-pk").values_list("pk", flat=True)[:limit]
