"""Encryption at rest: AES-256-GCM under a data key per tenant.

The master key wraps the data keys. The associated data of a sealed value consists of
tenant, table, row and column, so a value that is copied to another row or column does
not open. Layout: version (1 byte), nonce (12), ciphertext and tag. Rows without a
tenant are sealed under the system's data key.
"""

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist
from django.db import IntegrityError, connection, transaction

VERSION = b"\x01"
NONCE_BYTES = 12
DIGEST_PURPOSE = b"token digests"
# What is raised by a value that does not open, or whose data key does not.
CLOSED = (InvalidTag, ValueError, ObjectDoesNotExist, ImproperlyConfigured)
LOCK_SYSTEM_DATA_KEY = (
    "SELECT master_key_id FROM tenants_datakey WHERE tenant_id IS NULL FOR SHARE"
)
DataKey = Any  # the model: tenants.models imports this module


def seal(row: Any, column: str, value: Any) -> None:
    """Set `row.column` to the sealed form of a JSON value, before saving.

    None stays None.
    """
    sealed = None
    if value is not None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        key = data_key(row.tenant_id)
        sealed = encrypt_bytes(key, text, associated_data(row, column))
    setattr(row, column, sealed)


def sealed(row: Any, column: str, value: Any) -> bytes:
    """Like seal(), and return the bytes, for move(row, …, column=…)."""
    seal(row, column, value)
    return getattr(row, column)


def unseal(row: Any, column: str) -> Any:
    """Return the JSON value sealed in `row.column`, or None."""
    if getattr(row, column) is None:
        return None
    return unseal_with(data_key(row.tenant_id), row, column)


def unseal_all(rows: Iterable[Any], column: str) -> dict[Any, Any]:
    """Return the JSON values of a column by the rows' ids.

    None where it is empty, and where the data key went with its organization.
    For pages that list rows of many tenants: it reads all data keys with one query.
    """
    rows = list(rows)
    tenants = {row.tenant_id for row in rows if getattr(row, column) is not None}
    found = data_key_model().objects.filter(tenant__in=tenants) if tenants else ()
    keys = {row.tenant_id: unwrap_data_key(row) for row in found}
    return {
        row.pk: unseal_with(key, row, column) if key else None
        for row in rows
        for key in [keys.get(row.tenant_id)]
    }


def unseal_with(key: bytes | None, row: Any, column: str) -> Any:
    """Return the JSON value sealed in `row.column` under this data key, or None."""
    blob = getattr(row, column)
    if blob is None:
        return None
    assert key, "a sealed value has a data key"
    return json.loads(decrypt_bytes(key, bytes(blob), associated_data(row, column)))


def seal_text(value: Any, purpose: str) -> str:
    """Seal a JSON value for a client that sends it back, such as a cursor.

    It is sealed under the system's data key, and encoded as base64url without padding.
    """
    text = json.dumps(value).encode()
    sealed = encrypt_bytes(data_key(None), text, purpose.encode())
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal_text(text: str, purpose: str) -> Any:
    """Return the value that seal_text() sealed for this purpose, or None."""
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        return json.loads(decrypt_bytes(data_key(None), sealed, purpose.encode()))
    except (ValueError, InvalidTag):
        return None


def associated_data(row: Any, column: str) -> bytes:
    return f"{row.tenant_id}|{row._meta.db_table}|{row.pk}|{column}|1".encode()


def keyed_digest(secret: str) -> bytes:
    """Return the HMAC-SHA-256 (32 bytes). It prevents guessing on a stolen table.

    The same secret has the same digest under each master key.
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


def create_data_key(tenant: Any) -> DataKey:
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
    rows = data_key_model().objects.only("tenant", "master_key_id", "wrapped")
    system = rows.filter(tenant=None).first()
    unknown = rows.exclude(master_key_id__in=list(known_master_keys())).first()
    for row in filter(None, (system, unknown)):
        unwrap_data_key(row)


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


@lru_cache(maxsize=10_000)
def data_key(tenant_id: Any) -> bytes:
    if tenant_id is None:
        return unwrap_data_key(system_data_key())
    return unwrap_data_key(data_key_model().objects.get(tenant_id=tenant_id))


def data_key_model() -> Any:
    return apps.get_model("tenants", "DataKey")


def unwrap_data_key(row: DataKey) -> bytes:
    return unwrap(row, "wrapped")


def wrap(row: DataKey, column: str, key: bytes, master_key: str) -> None:
    """Set a column of a data key's row to a key, wrapped by the master key of this id.

    All columns of a row are wrapped by the same one.
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
            f"({row.master_key_id}): the row {row.pk} of tenants_datakey was changed. "
            "Restore it from a backup."
        ) from None


def wrapping_data(row: DataKey, column: str) -> bytes:
    """Return the associated data of a wrapped key."""
    return f"{row.tenant_id}|tenants_datakey|{row.pk}|{column}|1".encode()


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
    return id_of_master_key(settings.MASTER_KEY)


def id_of_master_key(key: bytes) -> str:
    """Return an id of the master key, which discloses nothing about the key."""
    return derive_key(key, b"key id").hex()[:16]


@lru_cache(maxsize=8)
def derive_key(master_key: bytes, purpose: bytes) -> bytes:
    """Derive a separate key for each purpose from a master key."""
    return hmac.digest(master_key, purpose, hashlib.sha256)


def encrypt_bytes(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return VERSION + nonce + AESGCM(key).encrypt(nonce, plaintext, associated)


def decrypt_bytes(key: bytes, blob: bytes, associated: bytes) -> bytes:
    """Decrypt a sealed value. Raises InvalidTag."""
    if blob[:1] != VERSION:
        raise InvalidTag
    nonce = blob[1 : 1 + NONCE_BYTES]
    ciphertext = blob[1 + NONCE_BYTES :]
    return AESGCM(key).decrypt(nonce, ciphertext, associated)
