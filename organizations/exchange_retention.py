"""Delete what organizations do not want to keep: first values, then whole records.

Only of finished exchanges of their own wallets, and never what a wallet holds. Nothing
is deleted unless the settings of the organization say after how many days.
"""

import time
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from agency.core import metrics, retention
from agency.core.retention import BATCH_ROWS, BatchBudget, days_ago
from connections.exchange import PARTIES, Exchange
from credentials.models import Credential
from credentials.removal import remove_credential
from tenants.models import Tenant
from verifications.models import Verification

# The columns with values, and with what they can be computed from.
VALUES: dict[type[Exchange], tuple[str, ...]] = {
    Credential: ("values", "proposal", "reason"),
    Verification: ("proof", "presentation", "checks", "proposal", "reason"),
}
RECORDS_AT_ONCE = 20


def delete_old_exchanges() -> int:
    """Delete values and records that are too old for their organizations.

    Return the number of rows that were changed or deleted.
    """
    budget = BatchBudget()
    wants = Q(values_kept_days__isnull=False) | Q(exchanges_kept_days__isnull=False)
    done = 0
    for tenant in Tenant.objects.filter(wants).order_by("pk"):
        for model in VALUES:
            if tenant.exchanges_kept_days is not None:
                before = days_ago(tenant.exchanges_kept_days)
                done += delete_records(finished_rows(tenant, model, before), budget)
            if tenant.values_kept_days is not None:
                before = days_ago(tenant.values_kept_days)
                done += delete_values(finished_rows(tenant, model, before), budget)
    return done


def finished_rows(
    tenant: Tenant, model: type[Exchange], before: datetime
) -> QuerySet[Any]:
    """Finished exchanges that have not changed since `before`, the oldest first.

    Of the organization's own wallet, without the credentials that it holds.
    """
    wallet = tenant.wallets.get(is_organization=True)
    rows = model.objects.filter(wallet=wallet, updated_at__lt=before)
    rows = rows.exclude(state__in=model.OPEN).order_by("updated_at")
    return rows.exclude(role=Credential.Role.HOLDER)


def delete_values(rows: QuerySet[Any], budget: BatchBudget) -> int:
    """Empty the columns with values. The records stay, with their states."""
    columns = VALUES[rows.model]
    has_values = Q()
    for column in columns:
        has_values |= Q(**{f"{column}__isnull": False})
    rows = rows.filter(has_values).values_list("pk", flat=True)
    done = 0
    while budget.take_batch() and (keys := list(rows[:BATCH_ROWS])):
        emptied = rows.model.objects.filter(pk__in=keys)
        done += emptied.exclude(state__in=rows.model.OPEN).update(
            **dict.fromkeys(columns)
        )
        time.sleep(retention.PAUSE_SECONDS)
    return done


def delete_records(rows: QuerySet[Any], budget: BatchBudget) -> int:
    """Delete the records, each with the connection that exists for it alone.

    Each is a transaction of its own. A revocation that is not published yet is
    published before its credential goes (remove_credential). Return how many.
    """
    rows = rows.select_related(*PARTIES)
    done = 0
    while budget.take_batch() and (batch := list(rows[:RECORDS_AT_ONCE])):
        for row in batch:
            remove_credential(row) if isinstance(row, Credential) else row.remove()
        metrics.count_deleted(rows.model._meta.label, len(batch))
        done += len(batch)
        time.sleep(retention.PAUSE_SECONDS)
    return done
