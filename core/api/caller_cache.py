"""The organizations that called this process, each proved anew for every request.

Building the rows of a caller with Django costs more than most calls. So they are kept,
with the versions that the rows had in the database. One cheap statement per request
reads the versions: they are the same only if no process has changed or deleted one of
the rows. So a revoked key is refused from the moment at which its revocation is
committed, and nothing here expires.
"""

from collections import OrderedDict
from copy import deepcopy
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db.models import JSONField
from django.db.models.base import ModelState

from core.database import shortcuts
from core.database.base import fetch_rows, run_as_check
from tenants.models import ApiKey, Tenant

MAX_CALLERS = 1000
# PostgreSQL writes every change of a row as a new tuple: at another place (ctid), by
# another transaction (xmin). So there is no column that a change could fail to set.
# The digests are single parameters: of an array PostgreSQL does not know the length
# before it has the value, and would plan the statement anew for every request.
READ_VERSIONS = """
WITH key AS MATERIALIZED (
    SELECT id, tenant_id, ctid AS place, xmin AS writer
    FROM tenants_apikey WHERE sha256 IN ({digests})
)
SELECT key.place, key.writer, tenant.ctid, tenant.xmin,
    network.ctid, network.xmin, wallet.ctid, wallet.xmin,
    provider.ctid, provider.xmin
FROM key
JOIN tenants_tenant AS tenant ON tenant.id = key.tenant_id
JOIN tenants_network AS network ON network.id = tenant.network_id
LEFT JOIN tenants_provider AS provider ON provider.id = tenant.provider_id
LEFT JOIN wallets_wallet AS wallet
    ON wallet.tenant_id = tenant.id AND wallet.is_organization
ORDER BY key.id
"""
Versions = list[tuple[str, ...]]


class Caller(NamedTuple):
    """An organization that calls with one of its access tokens.

    keys: all keys of the request, the token included. wallet: the organization's own.
    """

    tenant: Tenant
    token: ApiKey
    keys: tuple[ApiKey, ...]
    wallet: Any
    is_authenticated: bool = True


class KnownCaller(NamedTuple):
    """caller: each request gets a copy of it, whose rows it may change."""

    versions: Versions
    caller: Caller


_known: "OrderedDict[tuple[bytes, ...], KnownCaller]" = OrderedDict()
_lock = Lock()


def find_caller(secrets: dict[str, str]) -> Caller | None:
    """Return the organization with these live keys, or None.

    secrets: by kind, an access token among them. All must belong to one organization.
    """
    digests = tuple(ApiKey.digest_all(secrets))
    if not digests:
        return None
    if not shortcuts.are_used:
        return load_caller(secrets)
    # Read before the rows: a change between the two is noticed by the next request.
    versions = run_as_check(lambda: read_versions(digests))
    if len(versions) < len(digests) and ApiKey.adopt_keys(secrets):
        versions = read_versions(digests)
    if len(versions) != len(digests):
        return None
    known = _known.get(digests)
    if known and known.versions == versions:
        caller = copy_caller(known.caller)
        return caller if all(key.is_live for key in caller.keys) else None
    found = load_caller(secrets)
    if found:
        remember(digests, KnownCaller(versions, copy_caller(found)))
    return found


def read_versions(digests: tuple[bytes, ...]) -> Versions:
    """Return what changes with the rows of these keys and of their organizations."""
    sql = READ_VERSIONS.format(digests=", ".join(["%s"] * len(digests)))
    return fetch_rows(sql, digests)


def load_caller(secrets: dict[str, str]) -> Caller | None:
    keys = ApiKey.find_live_by_kind(secrets)
    if set(keys) != set(secrets) or len({key.tenant_id for key in keys.values()}) > 1:
        return None
    token = keys[ApiKey.Kind.ACCESS_TOKEN]
    tenant = token.tenant
    assert tenant, "an access token is an organization's"
    for key in keys.values():
        key.tenant = tenant
    wallet = tenant.wallets.get(is_organization=True)
    return Caller(tenant, token, tuple(keys.values()), wallet)


def copy_caller(caller: Caller) -> Caller:
    """The caller with a copy of each row.

    `pickle` and `copy` take many times as long for Django's rows.
    """
    copies: dict[int, Any] = {}
    return Caller(
        copy_row(caller.tenant, copies),
        copy_row(caller.token, copies),
        tuple(copy_row(key, copies) for key in caller.keys),
        copy_row(caller.wallet, copies),
    )


def copy_row(row: Any, copies: dict[int, Any]) -> Any:
    """Copy a row and, once each, the rows that are joined to it."""
    if found := copies.get(id(row)):
        return found
    model: Any = type(row)
    copied = copies[id(row)] = model.__new__(model)
    copied.__dict__ = columns = dict(row.__dict__)
    for name in mutable_columns(model):
        columns[name] = deepcopy(columns[name])
    copied._state = state = ModelState()
    state.adding, state.db = False, row._state.db
    for name, joined in row._state.fields_cache.items():
        state.fields_cache[name] = joined and copy_row(joined, copies)
    return copied


@cache
def mutable_columns(model: Any) -> list[str]:
    """The columns whose values could be changed in their place."""
    fields = model._meta.concrete_fields
    return [one.attname for one in fields if isinstance(one, JSONField | ArrayField)]


def remember(digests: tuple[bytes, ...], known: KnownCaller) -> None:
    with _lock:
        _known[digests] = known
        _known.move_to_end(digests)
        while len(_known) > MAX_CALLERS:
            _known.popitem(last=False)
