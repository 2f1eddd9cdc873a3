"""Delete what organizations do not want to keep: first values, then whole records.

Only of finished exchanges of their own wallets, and never what a wallet holds. Nothing
is deleted unless the settings of the organization say after how many days.
"""

import time
from typing import Any

from django.db.models import Q, QuerySet

from connections.exchange import PARTIES, Exchange
from core.work import retention, transactions
from core.work.retention import (
    BATCH_ROWS,
    BatchBudget,
    days_ago,
    remove_one_by_one,
)
from credentials.models import Credential, NameDigests, NameKey
from credentials.removal import remove_credential
from tenants.models import Tenant
from verifications.models import CheckDigests, Verification
from wallets.models import Wallet

# The columns with values, and with what they can be computed from.
VALUES: dict[type[Exchange], tuple[str, ...]] = {
    Credential: ("values", "recipient_name", "proposal", "reason", "metadata"),
    Verification: (
        "proof",
        "presentation",
        "checks",
        "proposal",
        "reason",
        "metadata",
    ),
}


def delete_old_exchanges() -> int:
    """Delete values and records that are too old for their organizations.

    Return the number of rows that were changed or deleted.
    """
    budget = BatchBudget()
    wants = Q(values_kept_days__isnull=False) | Q(exchanges_kept_days__isnull=False)
    done = 0
    for tenant in Tenant.objects.filter(wants).order_by("pk"):
        for model in VALUES:
            for rows in finished_rows(tenant, model, tenant.exchanges_kept_days):
                rows = rows.select_related(*PARTIES)
                done += remove_one_by_one(rows, remove_record, budget)
            for rows in finished_rows(tenant, model, tenant.values_kept_days):
                done += delete_values(tenant, rows, budget)
    return done


def finished_rows(
    tenant: Tenant, model: type[Exchange], days: int | None
) -> list[QuerySet[Any]]:
    """Exchanges that ended so many days ago, the oldest first, in two parts.

    They are of the organization's own wallet, without the credentials that it holds. A
    change of notes puts nothing off. Without `days` nothing is too old.
    """
    if days is None:
        return []
    wallet = Wallet.of_organization(tenant)
    return [
        part.exclude(state__in=model.OPEN).exclude(role=Credential.Role.HOLDER)
        for part in model.unmoved_since(days_ago(days), wallet=wallet)
    ]


def delete_values(tenant: Tenant, rows: QuerySet[Any], budget: BatchBudget) -> int:
    """Empty the columns with values. The records stay, with their states.

    What finds them by the name of a person goes too.
    """
    columns = VALUES[rows.model]
    has_values = Q()
    for column in columns:
        has_values |= Q(**{f"{column}__isnull": False})
    rows = rows.filter(has_values).values_list("pk", flat=True)
    if not rows.exists():
        return 0
    done = 0
    while budget.take_batch():
        with transactions.atomic():
            # So that nobody fills in meanwhile what finds them: name_filling.py.
            # If there is no key yet, whoever makes one waits for this one.
            key = NameKey.of(tenant.pk)
            list(NameKey.objects.select_for_update().filter(pk=key.pk))
            # What somebody has locked, with others perhaps, is left to the next run.
            free = rows.select_for_update(skip_locked=True, no_key=True)
            keys = list(free[:BATCH_ROWS])
            emptied = rows.model.objects.filter(pk__in=keys)
            done += emptied.update(**dict.fromkeys(columns))
            if rows.model is Credential:
                NameDigests.objects.filter(credential__in=keys).delete()
            else:
                CheckDigests.objects.filter(verification__in=keys).delete()
        if not keys:
            break
        time.sleep(retention.PAUSE_SECONDS)
    return done


def remove_record(row: Credential | Verification) -> None:
    """Delete a record, with the connection that exists for it alone.

    A revocation that is not published yet is published first (remove_credential).
    """
    remove_credential(row) if isinstance(row, Credential) else row.remove()
