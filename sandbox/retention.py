"""Delete the data of test organizations some time after it was made.

What goes are exchanges, texts, connections and hosted wallets; simulated holders stay,
with their connection. Definitions, policies and all settings stay.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet

from agency.core import metrics, retention
from agency.core.errors import AgencyError
from agency.core.retention import BatchBudget, days_ago, delete_in_batches
from connections.exchange import PARTIES
from connections.models import BasicMessage, Connection
from connections.removal import remove_connection
from credentials.models import Credential
from credentials.removal import remove_credential
from sandbox.models import SimulatedAnswer, SimulatedHolder
from tenants.models import Tenant
from verifications.models import Verification
from wallets.models import Wallet

logger = logging.getLogger(__name__)
KEPT_DAYS = 30
ROWS_AT_ONCE = 20


def delete_old_data() -> int:
    """Return the number of rows that were deleted, each with what belongs to it."""
    budget = BatchBudget()
    tenants = Tenant.objects.filter(is_test=True, frozen_at=None).order_by("pk")
    return sum(delete_of_organization(tenant, budget) for tenant in tenants)


def delete_of_organization(tenant: Tenant, budget: BatchBudget) -> int:
    """Delete what is older than KEPT_DAYS. Return the number of rows.

    Each row with what belongs to it is a transaction of its own. Wallets go first, as
    their exchanges and connections go with them.
    """
    old = {"tenant": tenant, "created_at__lt": days_ago(KEPT_DAYS)}
    wallets = Wallet.hosted_by(tenant).filter(**old, simulated_holder=None)
    credentials = Credential.objects.filter(**old, wallet__deleted_at=None)
    verifications = Verification.objects.filter(**old, wallet__deleted_at=None)
    texts = BasicMessage.objects.filter(
        connection__tenant=tenant, created_at__lt=old["created_at__lt"]
    )
    # Without those of simulated holders, on either side.
    holders = SimulatedHolder.objects.filter(tenant=tenant)
    simulated = Connection.objects.filter(wallet__in=holders.values("wallet"))
    keys = simulated.values("my_key__verkey")
    connections = Connection.objects.filter(**old, wallet__deleted_at=None)
    connections = connections.exclude(
        Q(pk__in=simulated.values("pk")) | Q(their_key__in=keys)
    ).select_related("wallet__tenant", "my_key", "invitation_key")
    failed = SimulatedAnswer.objects.filter(**old)
    return (
        remove_rows(wallets, Wallet.remove, budget)
        + remove_rows(credentials.select_related(*PARTIES), remove_credential, budget)
        + remove_rows(
            verifications.select_related(*PARTIES), Verification.remove, budget
        )
        + remove_rows(connections, remove_connection, budget)
        + delete_in_batches(texts.only("pk"), budget)
        + delete_in_batches(failed.only("pk"), budget)
    )


def remove_rows(
    rows: QuerySet[Any], remove: Callable[[Any], None], budget: BatchBudget
) -> int:
    """Remove the rows, each in a transaction of its own. Return how many are gone.

    One that cannot be removed now is left to the next run.
    """
    removed, last = 0, None
    while budget.take_batch():
        later = rows if last is None else rows.filter(pk__gt=last)
        batch = list(later.order_by("pk")[:ROWS_AT_ONCE])
        if not batch:
            break
        for row in batch:
            try:
                remove(row)
                removed += 1
            except AgencyError as error:
                logger.warning("%s is not removed yet: %s", row.pk, error.code)
        last = batch[-1].pk
        time.sleep(retention.PAUSE_SECONDS)
    metrics.count_deleted(rows.model._meta.label, removed)
    return removed
