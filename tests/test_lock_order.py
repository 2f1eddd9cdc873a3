"""No deadlocks: rows are locked in one order, or those left out that are locked.

The order is in docs/architecture.md.
"""

import json
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from connections import removal, strangers
from connections.models import Connection, OutboundMessage
from connections.protocols import handshakes, out_of_band
from connections.transport import return_route
from core.work import transactions
from credentials.models import Credential
from sandbox import holders
from sandbox.models import SimulatedHolder
from tenants import audit
from tenants.lifecycle import freezing
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import Tenant
from tests.sandbox.people import simulates
from tests.support.people import Organization
from tests.support.races import elsewhere, while_locked
from tests.support.steps import step
from wallets.models import Wallet
from webhooks.events.types import Type
from webhooks.models import Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}
LONG_AGO = timezone.now() - timedelta(days=90)
HOOK = {"url": "https://hooks.example", "type": "Zapier"}


@step
def definition(faber):
    return faber.defines(*VALUES)


@step
def issued(faber, definition):
    """Three credentials of one connection, the first of them the last in the table."""
    alice = faber.hosts()
    for _ in range(3):
        alice.receives(faber, definition, VALUES)
    rows = list(Credential.objects.filter(role="issuer").order_by("pk"))
    for row in reversed(rows):
        changes_place(row, updated_at=LONG_AGO)
    return rows


def changes_place(row, **changes):
    """Write the row anew: PostgreSQL stores it, and finds it, after all others."""
    type(row).objects.filter(pk=row.pk).update(**changes)


def lock(row):
    type(row)._base_manager.select_for_update(no_key=True).get(pk=row.pk)


def beside(call, first, last):
    """Run the call while another transaction locks one row, and then another.

    The call waits for the first. If it has locked the last already, that is a deadlock,
    and PostgreSQL ends one of the two transactions.
    """
    return while_locked(partial(lock, first), call, partial(lock, last))


def without(row, call):
    """Run the call while another transaction has locked the row. It must not wait."""
    with transactions.atomic():
        lock(row)
        return elsewhere(call)


def test_a_simulated_holder_is_changed_after_its_wallet():
    simulates(Organization("Faber", is_test=True))
    holder = SimulatedHolder.objects.get()
    change = partial(holders.change_holder, holder, "Max", "decline", 0, audit.SYSTEM)
    beside(change, holder.wallet, holder)
    holder.refresh_from_db()
    assert (holder.behaviour, holder.wallet.owner_name) == ("decline", "Max")


def test_a_connection_is_locked_with_the_invitation_that_it_is_used_for(faber):
    options = out_of_band.OutOfBandOptions(is_lasting=True)
    wallet = Wallet.of_organization(faber.tenant)
    former, latter = (handshakes.invite(wallet, options=options) for _ in range(2))
    alice = faber.hosts()
    mine = alice.accepts_invitation(json.dumps(latter.invitation))
    reuse = partial(alice.accepts_invitation, json.dumps(former.invitation))
    assert beside(reuse, former, latter) == mine
    assert not Connection.objects.filter(pk=former.pk).exists()
    assert not OutboundMessage.objects.exists(), "it was handled at once"


def test_webhooks_of_a_deleted_organization_are_locked_in_order(faber):
    for _ in range(2):
        faber.post("/webhooks", HOOK)
    first, last = Webhook.objects.order_by("pk")
    changes_place(first, strikes=1)
    tenant = Tenant.objects.get(pk=faber.tenant.pk)
    beside(partial(remove_organization, tenant, audit.SYSTEM), first, last)
    assert not Webhook.objects.exists()


def test_a_purge_locks_credentials_in_order(faber, definition, issued):
    path = f"/credentials/purge/{definition['definitionId']}"
    beside(partial(faber.delete, path), issued[0], issued[-1])
    assert faber.states() == []


def test_exchanges_of_a_small_connection_are_locked_in_order(issued):
    remove = partial(removal.remove_connection, issued[0].connection)
    beside(remove, issued[0], issued[-1])
    assert Credential.objects.filter(role="issuer", connection=None).count() == 3


def test_exchanges_leave_a_deleted_connection_in_order(issued):
    OutboundMessage.objects.all().delete()
    detach = partial(removal.detach_some, issued[0].connection_id)
    assert beside(detach, issued[0], issued[-1]) == 3


def test_values_that_somebody_has_locked_are_deleted_later(faber, issued):
    Tenant.objects.filter(pk=faber.tenant.pk).update(values_kept_days=30)
    assert without(issued[1], delete_old_exchanges) == 2
    assert delete_old_exchanges() == 1


def test_origins_that_somebody_has_locked_are_forgotten_later(faber, monkeypatch):
    for _ in range(3):
        faber.invites()
    Connection.objects.update(stranger=faber.tenant.pk)
    monkeypatch.setattr(strangers, "ORIGIN_KEPT", timedelta(days=-1))
    row = Connection.objects.order_by("pk")[1]
    assert without(row, strangers.forget_origins) == 2
    assert strangers.forget_origins() == 1


def test_replies_that_somebody_has_locked_are_forgotten_later(faber):
    key = Wallet.of_organization(faber.tenant).public_key
    given = {"tenant": faber.tenant, "my_key": key, "is_hosted": False}
    rows = [OutboundMessage(handed_to=str(n), **given) for n in range(3)]
    OutboundMessage.objects.bulk_create(rows)
    OutboundMessage.objects.update(created_at=LONG_AGO)
    assert without(rows[1], return_route.forget_old_replies) == 2
    assert return_route.forget_old_replies() == 1


def test_a_delivery_that_somebody_has_locked_is_held_later(faber):
    faber.post("/webhooks", HOOK | {"messageTypes": [str(one) for one in Type]})
    for _ in range(3):
        faber.invites()
    row = Delivery.objects.order_by("pk")[1]
    hold = partial(freezing.hold_rows, Delivery, faber.tenant)
    without(row, hold)
    assert Delivery.due().get() == row
    hold()
    assert not Delivery.due().exists()
