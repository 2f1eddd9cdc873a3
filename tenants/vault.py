"""Encryption at rest: AES-256-GCM under a data key per tenant.

The master key wraps the data keys. The associated data of a sealed value consists of
tenant, table, row, column and generation, so a value that is copied to another row or
column does not open. Rows without a tenant are sealed under the system's data key.

A tenant has a data key of another generation after each rotation of it. The newest one
seals, and each that still exists opens what it has sealed. Layout: a header, the nonce
(12 bytes), ciphertext and tag. The header of the first generation is 1; that of another
one is 2 and the generation in two bytes.
"""

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar, Protocol
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist
from django.db import IntegrityError, connection, models, transaction
from django.db.models.options import Options

FIRST_VERSION, GENERATION_VERSION = b"\x01", b"\x02"
GENERATION_BYTES = 2
NONCE_BYTES = 12
TAG_BYTES = 16
# How long a process may seal with a data key after the next one was created.
NEWEST_SECONDS = 10.0
MAX_TENANTS = 10_000
DIGEST_PURPOSE = b"token digests"
# What unsealing raises: InvalidTag for bytes that were changed or sealed elsewhere,
# ValueError for what is no JSON, ObjectDoesNotExist if the data key is gone,
# ImproperlyConfigured if no master key opens the data key.
UNSEAL_ERRORS = (InvalidTag, ValueError, ObjectDoesNotExist, ImproperlyConfigured)
LOCK_SYSTEM_DATA_KEY = (
    "SELECT master_key_id FROM tenants_datakey WHERE tenant_id IS NULL FOR SHARE"
)
DataKey = Any  # the model: tenants.models imports this module

# Whose data key, and its generation.
KeyPlace = tuple[UUID | None, int]

# By tenant: its newest generation, and until when that counts.
_newest: dict[UUID | None, tuple[int, float]] = {}
_lock = Lock()


class SealedRow(Protocol):
    """A row with sealed columns: an organization's, or the system's."""

    _meta: ClassVar["Options[Any]"]
    pk: Any

    @property
    def tenant_id(self) -> UUID | None: ...


def seal(row: SealedRow, column: str, value: Any) -> None:
    """Set `row.column` to the sealed form of a JSON value, before saving.

    None stays None.
    """
    setattr(row, column, sealed_value(row, column, value))


def sealed_value(row: SealedRow, column: str, value: Any) -> bytes | None:
    """Return the sealed form of a JSON value, for move(row, …, column=…).

    The row is not changed. None stays None.
    """
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return seal_bytes(row, column, text, newest_generation(row.tenant_id))


def seal_bytes(row: SealedRow, column: str, plaintext: bytes, generation: int) -> bytes:
    key = data_key(row.tenant_id, generation)
    associated = associated_data(row, column, generation)
    return encrypt_bytes(key, plaintext, associated, header_of(generation))


def unseal(row: SealedRow, column: str) -> Any:
    """Return the JSON value sealed in `row.column`, or None.

    Raises UNSEAL_ERRORS if it does not open.
    """
    blob = getattr(row, column)
    return None if blob is None else json.loads(unseal_bytes(row, column))


def unseal_bytes(row: SealedRow, column: str, key: bytes | None = None) -> bytes:
    """Return what is sealed in `row.column`, which is not None. Raises UNSEAL_ERRORS.

    key: the data key, if the caller has it.
    """
    blob = bytes(getattr(row, column))
    generation = generation_of(blob)
    key = key or data_key(row.tenant_id, generation)
    return decrypt_bytes(key, blob, associated_data(row, column, generation))


def unseal_all(rows: Sequence[SealedRow], column: str) -> dict[Any, Any]:
    """Return the JSON values of a column by the rows' ids.

    None where it is empty, and where the data key went with its organization.
    For pages that list rows of many tenants: it reads all data keys with one query,
    and with another one those of former generations, if there are such values.
    """
    values: dict[Any, Any] = {row.pk: None for row in rows}
    places = {
        row.pk: (row.tenant_id, generation_of(bytes(getattr(row, column))))
        for row in rows
        if getattr(row, column) is not None
    }
    keys = read_data_keys(set(places.values()))
    for row in rows:
        place = places.get(row.pk)
        if place and (key := keys.get(place)):
            values[row.pk] = json.loads(unseal_bytes(row, column, key))
    return values


def read_data_keys(wanted: set[KeyPlace]) -> dict[KeyPlace, bytes]:
    """Return data keys by tenant and generation; not the system's."""
    keys: dict[KeyPlace, bytes] = {}
    for model in (data_key_model(), former_data_key_model()):
        if missing := wanted - set(keys):
            tenants = {tenant for tenant, _ in missing}
            for row in model.objects.filter(tenant__in=tenants):
                keys[row.tenant_id, row.generation] = unwrap_data_key(row)
    return keys


def reseal(row: SealedRow, column: str, generation: int) -> bytes:
    """Return the value of `row.column`, sealed by the data key of this generation."""
    return seal_bytes(row, column, unseal_bytes(row, column), generation)


def seal_text(value: Any, purpose: str) -> str:
    """Seal a JSON value for a client that sends it back, such as a cursor.

    It is sealed under the system's data key, and encoded as base64url without padding.
    purpose: what unseal_text() must name. The first call in an installation creates
    that key.
    """
    return encode_text(json.dumps(value).encode(), purpose, newest_generation(None))


def encode_text(text: bytes, purpose: str, generation: int) -> str:
    key = data_key(None, generation)
    blob = encrypt_bytes(key, text, purpose.encode(), header_of(generation))
    return base64.urlsafe_b64encode(blob).decode().rstrip("=")


def decode_text(text: str) -> bytes:
    """Return the bytes that seal_text() encoded. Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)


def unseal_text(text: str, purpose: str) -> Any:
    """Return the value that seal_text() sealed for this purpose, or None.

    None for any other text, such as one that was changed or is of another
    installation.
    """
    try:
        blob = decode_text(text)
        key = data_key(None, generation_of(blob))
        return json.loads(decrypt_bytes(key, blob, purpose.encode()))
    except (ValueError, InvalidTag, ObjectDoesNotExist):
        return None


def is_sealed(text: str) -> bool:
    """Return whether the text has the form that seal_text() returns."""
    try:
        blob = decode_text(text)
        return len(blob) > len(header_of(generation_of(blob))) + NONCE_BYTES + TAG_BYTES
    except (ValueError, InvalidTag):
        return False


def reseal_text(text: str, purpose: str, generation: int) -> str:
    """Return the text, sealed by the system's data key of this generation."""
    blob = decode_text(text)
    opened = decrypt_bytes(data_key(None, generation_of(blob)), blob, purpose.encode())
    return encode_text(opened, purpose, generation)


def associated_data(row: SealedRow, column: str, generation: int) -> bytes:
    place = f"{row.tenant_id}|{row._meta.db_table}|{row.pk}|{column}"
    return f"{place}|{generation}".encode()


def header_of(generation: int) -> bytes:
    """Return the first bytes of what the data key of this generation seals."""
    if generation == 1:
        return FIRST_VERSION
    return GENERATION_VERSION + generation.to_bytes(GENERATION_BYTES)


def generation_of(blob: bytes) -> int:
    """Return the generation of the data key that sealed this. Raises InvalidTag."""
    if blob[:1] == FIRST_VERSION:
        return 1
    generation = int.from_bytes(blob[1 : 1 + GENERATION_BYTES])
    if blob[:1] != GENERATION_VERSION or generation < 2:
        raise InvalidTag
    return generation


def keyed_digest(secret: str) -> bytes:
    """Return the HMAC-SHA-256 (32 bytes). It prevents guessing on a stolen table.

    The same secret has the same digest under each master key. A process reads the key
    once.
    """
    return hmac.digest(digest_key(), secret.encode(), "sha256")


@lru_cache(maxsize=1)
def digest_key() -> bytes:
    """Return the key of keyed digests: derived from the first master key.

    The first rotation of the master key stores it, wrapped as a data key is.
    """
    row = system_data_key()
    if row.digest_key is None:
        unwrap_data_key(row)  # so that it is the right master key
        return derive_key(known_master_keys()[row.master_key_id], DIGEST_PURPOSE)
    return unwrap(row, "digest_key")


def create_data_key(tenant: models.Model | None) -> DataKey:
    """Create a data key, in the transaction that creates the tenant.

    tenant: None for the system's data key.
    """
    key_id = master_key_id() if tenant is None else lock_master_key_in_force()
    row = data_key_model()(tenant=tenant)
    wrap(row, "wrapped", os.urandom(32), key_id)
    row.save()
    return row


def lock_master_key_in_force() -> str:
    """Return the id of the master key that wraps the system's data key.

    It wraps new data keys too, and stays in force until this transaction ends. So when
    `rotate_master_key` has put another one in force, none is missed.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_SYSTEM_DATA_KEY)
        found = cursor.fetchone()
        if not found:
            system_data_key()
            cursor.execute(LOCK_SYSTEM_DATA_KEY)
            found = cursor.fetchone()
    return found[0]


def check_master_key() -> None:
    """Raise ImproperlyConfigured unless the master keys open the data keys.

    It also runs before `migrate`: it reads only what the first version has too, and
    creates nothing.
    """
    known = list(known_master_keys())
    for model in existing_data_key_models():
        rows = model.objects.only("tenant", "master_key_id", "wrapped")
        system = rows.filter(tenant=None).first()
        unknown = rows.exclude(master_key_id__in=known).first()
        for row in filter(None, (system, unknown)):
            unwrap_data_key(row)


def existing_data_key_models() -> list[Any]:
    """Return the models of data keys whose tables `migrate` has created."""
    tables = connection.introspection.table_names()
    kinds = (data_key_model(), former_data_key_model())
    return [model for model in kinds if model._meta.db_table in tables]


def system_data_key() -> DataKey:
    """Return the system's data key. Create it when it is first needed."""
    rows = data_key_model().objects
    if row := rows.filter(tenant=None).first():
        return row
    try:
        with transaction.atomic():
            return create_data_key(None)
    except IntegrityError:  # another process was faster
        return rows.get(tenant=None)


@lru_cache(maxsize=MAX_TENANTS)
def data_key(tenant_id: UUID | None, generation: int = 1) -> bytes:
    """Return the key that seals, or has sealed, values of this generation.

    Raises DoesNotExist.
    """
    if tenant_id is None:
        row = system_data_key()
    else:
        row = data_key_model().objects.get(tenant_id=tenant_id)
    if row.generation != generation:
        rows = former_data_key_model().objects
        row = rows.get(tenant_id=tenant_id, generation=generation)
    return unwrap_data_key(row)


def newest_generation(tenant_id: UUID | None) -> int:
    """Return the generation of the data key that seals.

    A process asks the database again after NEWEST_SECONDS.
    """
    known, until = _newest.get(tenant_id, (0, 0.0))
    if time.monotonic() < until:
        return known
    until = time.monotonic() + NEWEST_SECONDS
    rows = data_key_model().objects.filter(tenant_id=tenant_id)
    newest = rows.values_list("generation", flat=True).first() or 1
    with _lock:
        if len(_newest) >= MAX_TENANTS:
            _newest.clear()
        _newest[tenant_id] = (newest, until)
    return newest


def forget_keys() -> None:
    data_key.cache_clear()
    digest_key.cache_clear()
    _newest.clear()


def data_key_model() -> Any:
    return apps.get_model("tenants", "DataKey")


def former_data_key_model() -> Any:
    return apps.get_model("tenants", "FormerDataKey")


def unwrap_data_key(row: DataKey) -> bytes:
    """Return the data key in a row, 32 bytes.

    ImproperlyConfigured if no master key of this process opens it.
    """
    return unwrap(row, "wrapped")


def wrap(row: DataKey, column: str, key: bytes, master_key: str) -> None:
    """Set a column of a data key's row to a key, wrapped by the master key of this id.

    The row is not saved. All columns of a row are wrapped by the same master key.
    ImproperlyConfigured if this process does not have it.
    """
    row.master_key_id = master_key
    wrapping_key = find_master_key(master_key)
    setattr(row, column, encrypt_bytes(wrapping_key, key, wrapping_data(row, column)))


def unwrap(row: DataKey, column: str) -> bytes:
    """Return the key in this column. Raises ImproperlyConfigured."""
    wrapping_key = find_master_key(row.master_key_id)
    try:
        wrapped = bytes(getattr(row, column))
        return decrypt_bytes(wrapping_key, wrapped, wrapping_data(row, column))
    except InvalidTag:
        raise ImproperlyConfigured(
            f"The {row} does not open with the master key that wrapped it "
            f"({row.master_key_id}): the row {row.pk} of {row._meta.db_table} was "
            "changed. "
            "Restore it from a backup."
        ) from None


def wrapping_data(row: DataKey, column: str) -> bytes:
    """Return the associated data of a wrapped key."""
    return f"{row.tenant_id}|{row._meta.db_table}|{row.pk}|{column}|1".encode()


def find_master_key(key_id: str) -> bytes:
    """Return the master key with this id. Raises ImproperlyConfigured."""
    known = known_master_keys()
    if key_id in known:
        return known[key_id]
    raise ImproperlyConfigured(
        "AGENCY_MASTER_KEY is not the key this database was sealed with (it needs "
        f"key {key_id}, this one is {' and '.join(known)}). "
        "Put the right key back."
    )


def known_master_keys() -> dict[str, bytes]:
    """Return the master keys that this process was given, by their ids.

    The first is AGENCY_MASTER_KEY, a second one AGENCY_OLD_MASTER_KEY.
    """
    keys = filter(None, (settings.MASTER_KEY, settings.OLD_MASTER_KEY))
    return {id_of_master_key(key): key for key in keys}


def master_key_id() -> str:
    """Return the id of AGENCY_MASTER_KEY: see id_of_master_key()."""
    return id_of_master_key(settings.MASTER_KEY)


def id_of_master_key(key: bytes) -> str:
    """Return an id of the master key, which discloses nothing about the key.

    16 hexadecimal digits.
    """
    return derive_key(key, b"key id").hex()[:16]


@lru_cache(maxsize=8)
def derive_key(master_key: bytes, purpose: bytes) -> bytes:
    """Derive a separate key for each purpose from a master key."""
    return hmac.digest(master_key, purpose, hashlib.sha256)


def encrypt_bytes(
    key: bytes, plaintext: bytes, associated: bytes, header: bytes = FIRST_VERSION
) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return header + nonce + AESGCM(key).encrypt(nonce, plaintext, associated)


def decrypt_bytes(key: bytes, blob: bytes, associated: bytes) -> bytes:
    if blob[:1] not in (FIRST_VERSION, GENERATION_VERSION):
        raise InvalidTag
    start = 1 if blob[:1] == FIRST_VERSION else 1 + GENERATION_BYTES
    nonce = blob[start : start + NONCE_BYTES]
    ciphertext = blob[start + NONCE_BYTES :]
    if len(nonce) < NONCE_BYTES:
        raise InvalidTag
    return AESGCM(key).decrypt(nonce, ciphertext, associated)
