"""The worker's side: offer the rows of bulks, a few of each in turn."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from connections.hosted_peers import connections_with_hosted, own_connections
from connections.protocols import connectionless
from core import faults
from core.database.base import is_outage
from core.errors import AgencyError, NotFound, Unavailable
from core.telemetry import logs
from core.work import network_reads
from core.work.dispatcher import NotifiedLoop
from credentials.bulk.checking import CONNECTION_NOT_FOUND, WALLET_NOT_FOUND
from credentials.models import Bulk, BulkRow, Credential
from tenants import vault
from wallets.models import Wallet

logger = logging.getLogger(__name__)
ROWS_PER_TURN = 20
RETRY_DELAY = timedelta(seconds=30)


class BulkLoop(NotifiedLoop):
    """One in each process, so that bulks occupy one of its threads at most."""

    def run_loop(self) -> None:
        while not self.is_stopped:
            self.notified.clear()
            bulk = Bulk.claim_next()
            if not bulk:
                return
            take_turn(bulk)


loop = BulkLoop()


def take_turn(bulk: Bulk) -> None:
    """Offer the next rows of a bulk that is leased to the caller.

    If something that an offer needs does not respond (Unavailable), the whole bulk
    waits for RETRY_DELAY.
    """
    with logs.continue_request(bulk.request_id):
        try:
            rows = bulk.rows.filter(status=BulkRow.Status.WAITING).order_by("number")
            for key in rows.values_list("pk", flat=True)[:ROWS_PER_TURN]:
                try_row(bulk, key)
            bulk.end_turn()
        except Unavailable as error:
            bulk.try_later(RETRY_DELAY, error.code)


def try_row(bulk: Bulk, key: UUID) -> None:
    """Offer a row. If that fails, the error is stored with the row.

    Unavailable and an outage of the database are raised: the row stays waiting.
    """
    try:
        offer_row(bulk, key)
    except Unavailable:
        raise
    except AgencyError as error:
        fail_row(key, error.code, error.message)
    except Exception as error:  # one row must not stop the others
        if is_outage(error):
            raise
        logger.exception("row %s of bulk %s failed", key, bulk.pk)
        fail_row(key, "internal_error", "Something broke on our side. Try again.")


@network_reads.atomic_with_reads
def offer_row(bulk: Bulk, key: UUID) -> None:
    """Offer and mark the row in one transaction, unless somebody else does."""
    waiting = BulkRow.objects.filter(pk=key, status=BulkRow.Status.WAITING)
    row = waiting.select_for_update(skip_locked=True, no_key=True).first()
    if not row:
        return
    row.credential = make_offer(bulk, row)
    row.status = BulkRow.Status.OFFERED
    # Its notes are the credential's now, which may change there.
    row.values, row.metadata, row.reference = None, None, ""
    row.updated_at = timezone.now()
    moved = ["values", "metadata", "reference"]
    row.save(update_fields=["status", "credential", "updated_at", *moved])
    faults.fault_point("inside_bulk_row")


def make_offer(bulk: Bulk, row: BulkRow) -> Credential:
    """Make the same offer as a call of the API does.

    NotFound if what the row names was there when the file was checked, and is gone.
    """
    options: dict[str, Any] = {
        "definition": bulk.definition,
        "values": vault.unseal(row, "values"),
        "automatic_issuance": bulk.automatic_issuance,
        "notes": row.notes(),
    }
    wallet = Wallet.of_organization(bulk.tenant)
    if row.is_by_link:
        options["options"] = connectionless.default_options(bulk.tenant)
        return Credential.offer_by_link(wallet, **options)
    if row.wallet_id:
        found = connections_with_hosted(wallet, [row.wallet_id])
        connection = found.get(row.wallet_id)
    else:
        rows = own_connections(wallet).filter(connection_id=row.connection_id)
        connection = rows.first()
    if not connection:
        message = WALLET_NOT_FOUND if row.wallet_id else CONNECTION_NOT_FOUND
        raise NotFound("not_found", message)
    return Credential.offer(connection, **options)


def fail_row(key: UUID, code: str, message: str) -> None:
    rows = BulkRow.objects.filter(pk=key, status=BulkRow.Status.WAITING)
    rows.update(
        status=BulkRow.Status.FAILED,
        errors=[{"column": "", "code": code, "message": message}],
        updated_at=timezone.now(),
    )
