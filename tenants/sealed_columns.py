"""Where sealed values are: every binary column but those listed here."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.db import models

from tenants import vault
from tenants.models import Tenant

Row = TypeVar("Row", bound=models.Model)
BATCH_ROWS = 200
# What these binary columns hold instead of a sealed value, by table and column.
NOT_SEALED = {
    "credentials_grant.code_digest": "a digest",
    "credentials_grant.token_digest": "a digest",
    "credentials_statuslist.changed": "what differs from another public list",
    "credentials_tokenstatuslist.bits": "a public list",
    "credentials_tokenstatuslist.taken": "which places of it were given",
    "tenants_apikey.digest": "a keyed digest",
    "tenants_apikey.sha256": "a digest",
    "tenants_datakey.digest_key": "a key wrapped by the master key",
    "tenants_datakey.wrapped": "a data key wrapped by the master key",
    "tenants_formerdatakey.wrapped": "a data key wrapped by the master key",
    "tenants_idempotencykey.fingerprint": "a keyed digest",
    "tenants_invitation.digest": "a keyed digest",
    "verifications_kiosk.sha256": "a digest",
    "webwallet_personallink.digest": "a digest",
    "webwallet_pintry.address": "a keyed digest",
    "webwallet_showncard.digest": "a digest",
    "webwallet_walletpasskey.credential": "a public key with its id",
    "webwallet_walletsession.digest": "a digest",
    "connections_outboundmessage.envelope": "a message packed for another agent",
    "connections_seenmessage.digest": "a digest of a message id",
}


class SealedTable(NamedTuple):
    """A model and the names of its sealed columns."""

    model: type[models.Model]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.model._meta.db_table

    @property
    def tenant_lookup(self) -> str | None:
        """The lookup of a row's organization; None if all rows are the system's."""
        if hasattr(self.model, "TENANT_LOOKUP"):
            return self.model.TENANT_LOOKUP
        has_field = any(one.name == "tenant" for one in self.model._meta.fields)
        return "tenant" if has_field else None

    def list_rows(self) -> models.QuerySet[models.Model]:
        """All rows, each with what its associated data is made of."""
        found = self.model._base_manager.all()
        if lookup := getattr(self.model, "TENANT_LOOKUP", None):
            return found.select_related(lookup.rpartition("__")[0])
        names = [*self.columns, *filter(None, [self.tenant_lookup])]
        return found.only("pk", *names)


def list_sealed_tables() -> list[SealedTable]:
    """Return all tables with sealed columns, in the order of their names."""
    found = []
    for model in apps.get_models():
        columns = tuple(
            field.attname
            for field in model._meta.concrete_fields
            if isinstance(field, models.BinaryField)
            and f"{model._meta.db_table}.{field.column}" not in NOT_SEALED
        )
        if columns:
            found.append(SealedTable(model, columns))
    return sorted(found, key=lambda one: one.name)


def batches_of(rows: models.QuerySet[Row]) -> Iterator[list[Row]]:
    """Yield all rows in the order of their ids, a statement for each batch."""
    last = None
    while True:
        following = rows if last is None else rows.filter(pk__gt=last)
        batch = list(following.order_by("pk")[:BATCH_ROWS])
        if not batch:
            return
        yield batch
        last = batch[-1].pk


def opens(row: Any, column: str) -> bool:
    """Return whether the value of the column opens, as the row is now.

    A row that was deleted counts as one that does. So does one of a deleted
    organization, whose data key is gone, until a worker removes it.
    """
    if try_to_open(row, column):
        return True
    tenants = Tenant._base_manager.filter(pk=row.tenant_id)
    if tenants.exclude(deleted_at=None).exists():
        return True
    try:
        row.refresh_from_db(fields=[column])
    except ObjectDoesNotExist:
        return True
    return try_to_open(row, column)


def try_to_open(row: Any, column: str) -> bool:
    try:
        vault.unseal(row, column)
    except vault.UNSEAL_ERRORS:
        return False
    return True
