"""Sealing at rest: AES-256-GCM under one data key per tenant, each wrapped by the master key.

A sealed value is bound to its place: the additional data names tenant, table, row and column, so a
value copied elsewhere does not open. Layout: version (1 byte), nonce (12), ciphertext and tag.
Rows without a tenant are sealed under the system's data key.
"""

import base64
import hashlib
import hmac
import json
import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, transaction

VERSION = b"\x01"
NONCE_BYTES = 12


def seal(row, column, value):
    """Sets `row.column` to the sealed form of a JSON value (None stays None), before saving."""
    sealed = None
    if value is not None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        sealed = encrypt(data_key(row.tenant_id), text, place(row, column))
    setattr(row, column, sealed)


def sealed(row, column, value):
    """Like seal(), but returns the bytes, for move(row, …, column=…)."""
    seal(row, column, value)
    return getattr(row, column)


def unseal(row, column):
    """The JSON value sealed in `row.column`, or None."""
    blob = getattr(row, column)
    if blob is None:
        return None
    return json.loads(decrypt(data_key(row.tenant_id), bytes(blob), place(row, column)))


def seal_text(value, purpose):
    """A JSON value as base64url, for who brings it back: sealed under the system's data key."""
    sealed = encrypt(data_key(None), json.dumps(value).encode(), purpose.encode())
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal_text(text, purpose):
    """What seal_text() made for the same purpose; None if the text is anything else."""
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        return json.loads(decrypt(data_key(None), sealed, purpose.encode()))
    except (ValueError, InvalidTag):
        return None


def place(row, column):
    return f"{row.tenant_id}|{row._meta.db_table}|{row.pk}|{column}|1".encode()


def digest(secret):
    """Keyed SHA-256 (32 bytes): a stolen table of digests cannot even be tested against."""
    return hmac.digest(derived(b"token digests"), secret.encode(), "sha256")


def create_data_key(tenant):
    """Makes a data key, of the system for None, in the transaction that makes the tenant."""
    model = apps.get_model("tenants", "DataKey")
    row = model(tenant=tenant, master_key_id=master_key_id())
    row.wrapped = encrypt(settings.MASTER_KEY, os.urandom(32), wrapping_place(row))
    row.save()
    return row


def check_master_key():
    """Raises ImproperlyConfigured unless the master key opens what is already in the database."""
    model = apps.get_model("tenants", "DataKey")
    row = model.objects.filter(tenant=None).first() or model.objects.first()
    unwrap(row or system_data_key(model.objects))


def system_data_key(rows):
    """Made by who needs it first; the others wait for that."""
    try:
        with transaction.atomic():
            return create_data_key(None)
    except IntegrityError:
        return rows.get(tenant=None)


@lru_cache(maxsize=10_000)
def data_key(tenant_id):
    rows = apps.get_model("tenants", "DataKey").objects
    if tenant_id is None:
        return unwrap(rows.filter(tenant=None).first() or system_data_key(rows))
    return unwrap(rows.get(tenant_id=tenant_id))


def unwrap(row):
    try:
        return decrypt(settings.MASTER_KEY, bytes(row.wrapped), wrapping_place(row))
    except InvalidTag:
        raise ImproperlyConfigured(
            f"AGENCY_MASTER_KEY is not the key this database was sealed with (it needs key "
            f"{row.master_key_id}, this one is {master_key_id()}). Put the right key back."
        ) from None


def wrapping_place(row):
    return f"{row.tenant_id}|tenants_datakey|{row.pk}|wrapped|1".encode()


def master_key_id():
    return derived(b"key id").hex()[:16]


@lru_cache(maxsize=8)
def derived(purpose):
    return hmac.digest(settings.MASTER_KEY, purpose, hashlib.sha256)


def encrypt(key, plaintext, additional):
    nonce = os.urandom(NONCE_BYTES)
    return VERSION + nonce + AESGCM(key).encrypt(nonce, plaintext, additional)


def decrypt(key, blob, additional):
    if blob[:1] != VERSION:
        raise InvalidTag
    nonce, ciphertext = blob[1 : 1 + NONCE_BYTES], blob[1 + NONCE_BYTES :]
    return AESGCM(key).decrypt(nonce, ciphertext, additional)
