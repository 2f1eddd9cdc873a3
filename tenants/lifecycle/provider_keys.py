"""The newest keys of an organization, for the provider account that created it."""

from typing import NamedTuple

from django.conf import settings

from core.errors import Conflict
from core.work import transactions
from tenants import vault
from tenants.lifecycle.provisioning import TENANT_KINDS
from tenants.models import ApiKey, Tenant


class KeyPair(NamedTuple):
    """The texts of the keys that a call needs. The fields are named by `ApiKey.Kind`."""

    access_token: str
    subscription_key: str


def read_newest_keys(tenant: Tenant) -> KeyPair:
    """The newest keys, unsealed.

    409 `keys_not_readable` unless PROVIDER_KEYS_READABLE is set and both were kept.
    """
    newest = newest_keys(tenant)
    readable = settings.PROVIDER_KEYS_READABLE and all(
        kind in newest and newest[kind].sealed for kind in TENANT_KINDS
    )
    if not readable:
        message = "These keys were shown once and cannot be read. PATCH makes new ones."
        raise Conflict("keys_not_readable", message)
    return KeyPair(
        **{kind.value: vault.unseal(newest[kind], "sealed") for kind in TENANT_KINDS}
    )


@transactions.atomic()
def rotate_newest_keys(tenant: Tenant) -> KeyPair:
    """Rotate the newest key of each kind, and return the new ones.

    A former key stays live for a while (ApiKey.rotate). The lock on the organization
    puts two changes in one order.
    """
    tenant.lock_row()
    newest = newest_keys(tenant)
    made = {}
    for kind in TENANT_KINDS:
        former = newest.get(kind)
        _, made[kind.value] = (
            former.rotate() if former else ApiKey.issue(kind, tenant, "Provider")
        )
    return KeyPair(**made)


def newest_keys(tenant: Tenant) -> dict[str, ApiKey]:
    """The newest live key of each kind that has no end date, and has all scopes."""
    rows = ApiKey.live().filter(tenant=tenant, expires_at=None, scopes=None)
    rows = rows.order_by("pk")
    return {key.kind: key for key in rows}
