"""The worker's side: offer the rows of bulks, a few of each in turn."""

import logging
from functools import cache, partial

from django.utils import timezone

from connections.hosted_peers import connections_with_hosted, own_connections
from connections.protocols import connectionless
from core import faults
from core.database.base import is_outage
from core.errors import AgencyError, NotFound, Unavailable
from core.work import network_reads
from core.work.leases import attempt, work_on
from core.work.loop import Loop
from credentials import twins
from credentials.bulk.checking import CONNECTION_NOT_FOUND, WALLET_NOT_FOUND
from credentials.models import Bulk, BulkRow, Credential
from credentials.models.credential import Offered
from tenants import vault
from wallets.models import Wallet

logger = logging.getLogger(__name__)
ROWS_PER_TURN = 20


def take_turn(bulk: Bulk) -> None:
    """Offer the next rows of a bulk that is leased to the caller."""
    rows = bulk.rows.filter(status=BulkRow.Status.WAITING).order_by("number")
    offer = partial(offer_row, bulk, find=cache(twins.find_twin))
    for row in rows.only("pk")[:ROWS_PER_TURN]:
        attempt(row, offer, fail_row)
    bulk.end_turn()


@network_reads.atomic_with_reads
def offer_row(
    bulk: Bulk, found: BulkRow, find: twins.Finding = twins.find_twin
) -> None:
    """Offer and mark a waiting row in one transaction, unless somebody else does."""
    waiting = BulkRow.objects.filter(pk=found.pk, status=BulkRow.Status.WAITING)
    row = waiting.select_for_update(skip_locked=True, no_key=True).first()
    if not row:
        return
    row.credential = make_offer(bulk, row, find)
    row.status = BulkRow.Status.OFFERED
    # Its notes are the credential's now, which may change there.
    row.values, row.metadata, row.reference = None, None, ""
    row.recipient_name = None
    row.updated_at = timezone.now()
    moved = ["values", "recipient_name", "metadata", "reference"]
    row.save(update_fields=["status", "credential", "updated_at", *moved])
    faults.fault_point("inside_bulk_row")


def make_offer(bulk: Bulk, row: BulkRow, find: twins.Finding) -> Credential:
    """Make the same offer as a call of the API does.

    Over a connection the twin of the definition, if the peer reads that alone and the
    bulk names no network; `find` looks for it. NotFound if what the row names was there
    when the file was checked, and is gone.
    """
    offered: Offered = {
        "values": vault.unseal(row, "values"),
        "automatic_issuance": bulk.automatic_issuance,
        "notes": row.notes(),
        "recipient_name": vault.unseal(row, "recipient_name") or "",
    }
    wallet = Wallet.of_organization(bulk.tenant)
    if row.is_by_link:
        options = connectionless.default_options(bulk.tenant)
        credential = Credential.offer_by_link(
            wallet, bulk.definition, options=options, **offered
        )
        if name := vault.unseal(row, "recipient_name"):
            assert credential.connection, "it was made with its connection"
            credential.connection.update_columns(name=name)
        return credential
    if row.wallet_id:
        found = connections_with_hosted(wallet, [row.wallet_id])
        connection = found.get(row.wallet_id)
    else:
        rows = own_connections(wallet).filter(connection_id=row.connection_id)
        connection = rows.first()
    if not connection:
        message = WALLET_NOT_FOUND if row.wallet_id else CONNECTION_NOT_FOUND
        raise NotFound("not_found", message)
    bulk.definition.tenant = bulk.tenant  # its row, with the network
    if bulk.network:
        return Credential.offer(connection, bulk.definition, **offered)
    return twins.offer(connection, bulk.definition, find, **offered)


def fail_row(row: BulkRow, error: Exception) -> None:
    """Store the error of an offer with its row.

    Unavailable and an outage of the database are raised: the row stays waiting.
    """
    if isinstance(error, Unavailable) or is_outage(error):
        raise error
    if isinstance(error, AgencyError):
        code, message = error.code, error.message
    else:
        logger.exception("row %s of a bulk failed", row.pk)
        code, message = "internal_error", "Something broke on our side. Try again."
    rows = BulkRow.objects.filter(pk=row.pk, status=BulkRow.Status.WAITING)
    rows.update(
        status=BulkRow.Status.FAILED,
        errors=[{"column": "", "code": code, "message": message}],
        updated_at=timezone.now(),
    )


# Bulks occupy one thread of a process at most.
loop: Loop[Bulk] = Loop(
    claim=lambda _: Bulk.claim_next(), work=lambda bulk: work_on(bulk, take_turn)
)
