"""Make, change and remove simulated holders."""

from django.utils import timezone

from connections.didcomm import message as didcomm
from connections.protocols import handshakes
from core.database.columns import Columns
from core.errors import Conflict
from core.work import transactions
from sandbox.models import SimulatedHolder
from tenants import audit
from tenants.models import Tenant
from wallets.models import Wallet

MAX_HOLDERS = 50  # of an organization
MAX_DELAY = 600  # seconds


def require_test(tenant: Tenant) -> None:
    """Raise 409 `not_a_test_organization` unless it was created as one."""
    if not tenant.is_test:
        raise Conflict(
            "not_a_test_organization",
            "Only a test organization has simulated holders. An organization is marked "
            "as test when it is created, so create another one for tests.",
        )


@transactions.atomic()
def create_holder(
    tenant: Tenant, name: str, behaviour: str, delay_seconds: int = 0
) -> SimulatedHolder:
    """Create a hosted wallet that answers by itself, connected to its organization.

    In one transaction, with a lock on the organization for the count. The two parties
    write to each other at the end of the outermost transaction, so the connection is
    Connected only then. 409 `too_many_simulated_holders`.
    """
    require_test(tenant)
    tenant.lock_row()
    if SimulatedHolder.live_rows(tenant).count() >= MAX_HOLDERS:
        message = (
            f"An organization has at most {MAX_HOLDERS} simulated holders. Delete one "
            "first."
        )
        raise Conflict("too_many_simulated_holders", message)
    wallet = Wallet.create(tenant, owner_name=name)
    made = SimulatedHolder.objects.create(
        tenant=tenant, wallet=wallet, behaviour=behaviour, delay_seconds=delay_seconds
    )
    invited = handshakes.invite(Wallet.of_organization(tenant))
    handshakes.accept_invitation(wallet, didcomm.read(invited.invitation))
    return made


@transactions.atomic()
def change_holder(
    holder: SimulatedHolder,
    name: str,
    behaviour: str,
    delay_seconds: int,
    by: audit.Who,
) -> None:
    """Change how it answers from now on, also what has waited for its delay.

    In one transaction with the audit entry, which names no holder: so `name` is not in
    its details. It changes the wallet first, as remove_holder() does. by: the request
    or the actor, for the audit log.
    """
    changes: Columns = {"behaviour": behaviour, "delay_seconds": delay_seconds}
    details = audit.describe_changes(holder, changes)
    now = timezone.now()
    Wallet.objects.filter(pk=holder.wallet_id).update(owner_name=name, updated_at=now)
    SimulatedHolder.objects.filter(pk=holder.pk).update(**changes, updated_at=now)
    audit.record("simulated_holder.changed", holder, by=by, **details)


@transactions.atomic()
def remove_holder(holder: SimulatedHolder) -> None:
    """Delete it with its wallet, as any hosted wallet is deleted."""
    holder.wallet.remove()
    holder.delete()
