"""Delete the data of test organizations some time after it was made.

What goes are exchanges, texts, connections and hosted wallets; simulated holders stay,
with their connection. Definitions, policies and all settings stay.
"""

from django.db.models import Q

from connections.exchange import PARTIES
from connections.models import BasicMessage, Connection
from connections.removal import remove_connection
from core.work.retention import (
    BatchBudget,
    days_ago,
    delete_in_batches,
    remove_one_by_one,
)
from credentials.models import Credential
from credentials.removal import remove_credential
from sandbox.models import SimulatedAnswer, SimulatedHolder
from tenants.models import Tenant
from verifications.models import Verification
from wallets.models import Wallet

KEPT_DAYS = 30


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
        remove_one_by_one(wallets, Wallet.remove, budget)
        + remove_one_by_one(
            credentials.select_related(*PARTIES), remove_credential, budget
        )
        + remove_one_by_one(
            verifications.select_related(*PARTIES), Verification.remove, budget
        )
        + remove_one_by_one(connections, remove_connection, budget)
        + delete_in_batches(texts.only("pk"), budget)
        + delete_in_batches(failed.only("pk"), budget)
    )
