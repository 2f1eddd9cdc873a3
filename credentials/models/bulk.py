"""Many offers of one definition at once: a job, and a row for each offer."""

from datetime import timedelta
from typing import ClassVar, Self

from django.db import models
from django.db.models import Count, Q, QuerySet, Sum

from core.database import clock
from core.errors import Conflict, Unavailable, WrongState
from core.work import transactions
from credentials.models.credential import Credential
from credentials.models.definition import CredentialDefinition
from credentials.models.pausable import PausableJob
from tenants.models import NotedRow, Record, Tenant
from webhooks.events.emit import emit_event
from webhooks.events.models import Event
from webhooks.events.types import Type

MAX_UNFINISHED = 10  # of one organization
MAX_KEPT_ROWS = 1_000_000  # of all bulks of one organization
MAX_ERRORS = 10  # kept of one row
MAX_FILE_NAME = 100  # characters
RETRY_DELAY = timedelta(seconds=30)


class Bulk(PausableJob):
    """The offers of one file.

    Running ⇄ Paused;   Running → Done ─retry→ Running

    A worker leases it for a short turn and offers its next rows, each in a transaction
    of its own that also marks the row. So the lease only divides the work: whoever
    lost it can offer no row twice. At most one of an organization is leased at a time.

    definition: the one that was chosen, or its twin. network: where that is, if the
    caller named it; then no row gets the other one (credentials/twins.py). file_name: as
    it was uploaded, "" of the body of a call.
    started_at: None while its rows are being stored, and while they are being deleted;
    the API does not show it then.
    """

    State = PausableJob.State
    claim_lock, task = 0x62756C6B, "credentials.tasks.issue_bulks"
    steps: ClassVar[dict[tuple[str, str], str]] = {
        (State.DONE, State.RUNNING): "No row waits any more.",
        (State.PAUSED, State.RUNNING): "First resume it.",
        (State.RUNNING, State.PAUSED): "First pause it.",
    }

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    definition = models.ForeignKey(CredentialDefinition, on_delete=models.CASCADE)
    network = models.CharField(max_length=64, blank=True, default="", db_default="")
    file_name = models.CharField(
        max_length=MAX_FILE_NAME, blank=True, default="", db_default=""
    )
    automatic_issuance = models.BooleanField(default=False)
    row_count = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    # The number of its events: one each time that it was done.
    sequence = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        verbose_name = "bulk"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="done", finished_at__isnull=False)
                | ~Q(status="done") & Q(finished_at=None),
                name="done_bulk_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(paused_at=None) | Q(status="pending"),
                name="paused_bulk_is_not_done",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(status="pending"), name="bulk_due"
            ),
            models.Index(fields=["tenant", "-id"], name="bulks_of_tenant"),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def started(cls, tenant: Tenant) -> QuerySet[Self]:
        """Return those of an organization whose rows are all stored, in no order.

        Joined with definition and schema, without the definition's private keys.
        """
        rows = cls.objects.filter(tenant=tenant, started_at__isnull=False)
        rows = rows.select_related("definition__schema")
        return rows.defer("definition__private_key", "definition__key_proof")

    @classmethod
    def due(cls) -> QuerySet[Self]:
        """Return the due bulks that are started and not paused, in no order."""
        return super().due().filter(started_at__isnull=False)

    @classmethod
    def with_parties(cls, rows: QuerySet[Self]) -> QuerySet[Self]:
        rows = rows.select_related("definition__schema", "tenant__network")
        return rows.defer("definition__private_key")

    @classmethod
    def require_room(cls, tenant: Tenant) -> None:
        """Raise 409 `too_many_bulks` at the limit of unfinished ones, or of rows.

        A row that failed has its errors, which may be larger than the file. In the
        transaction that inserts the bulk: its lock on the organization keeps uploads at
        once from exceeding the limit of unfinished ones.
        """
        tenant.lock_row()
        cls._require_few_unfinished(tenant)
        own = cls.objects.filter(tenant=tenant)
        if (own.aggregate(rows=Sum("row_count"))["rows"] or 0) >= MAX_KEPT_ROWS:
            raise Conflict(
                "too_many_bulks",
                f"The bulks of your organization have {MAX_KEPT_ROWS} rows. Delete "
                "one that is done.",
            )

    @classmethod
    def _require_few_unfinished(cls, tenant: Tenant) -> None:
        """409 `too_many_bulks` at the limit. The caller has locked the organization."""
        if cls.unfinished().filter(tenant=tenant).count() >= MAX_UNFINISHED:
            raise Conflict(
                "too_many_bulks",
                f"Your organization has {MAX_UNFINISHED} bulks that are not done. "
                "Wait until one is.",
            )

    def begin_issuing(self) -> Self:
        """Let workers offer the rows, which are all stored now."""
        now = clock.now()
        self.started_at = self.due_at = self.updated_at = now
        self.save(update_fields=["started_at", "due_at", "updated_at"])
        self.notify_worker()
        return self

    def rows_to_retry(self) -> QuerySet["BulkRow"]:
        """The failed rows that may succeed without being changed."""
        return self.rows.filter(status=BulkRow.Status.FAILED, values__isnull=False)

    @transactions.atomic()
    def retry_failed(self) -> None:
        """Let the failed rows wait again that may succeed now.

        409 `nothing_to_retry` if there is none, `too_many_bulks` if it was done and the
        organization has as many that are not as it may. The organization is locked
        before the bulk.
        """
        self.tenant.lock_row()
        locked = Bulk.objects.select_for_update().get(pk=self.pk)
        rows = self.rows_to_retry()
        now = clock.now()
        if not rows.update(status=BulkRow.Status.WAITING, errors=[], updated_at=now):
            raise Conflict(
                "nothing_to_retry",
                "No row has failed that could succeed without being changed. Send "
                "those with wrong values again, corrected.",
            )
        if locked.state == self.State.DONE:
            self._require_few_unfinished(self.tenant)
        Bulk.objects.filter(pk=self.pk).update(
            status=self.Status.PENDING, finished_at=None, due_at=now, updated_at=now
        )
        self.notify_worker()

    def put_back(self, error: Exception) -> None:
        """If what an offer needs does not respond, the whole bulk waits RETRY_DELAY.

        Another error is raised.
        """
        if not isinstance(error, Unavailable):
            raise error
        self.try_later(RETRY_DELAY, error.code)

    @transactions.atomic()
    def end_turn(self) -> None:
        """End the lease. Without waiting rows the job is done.

        The lock excludes retry_failed(), which makes rows wait again.
        """
        rows = Bulk.objects.select_for_update()
        locked = rows.filter(pk=self.pk, lease_owner=self.lease_owner).first()
        if not locked:
            return
        now = clock.now()
        is_hidden = locked.started_at is None
        if is_hidden or self.rows.filter(status=BulkRow.Status.WAITING).exists():
            self._fenced(lease_owner=None, lease_until=None, due_at=now, updated_at=now)
        else:
            self.sequence = locked.sequence + 1
            changes = {"finished_at": now, "updated_at": now, "paused_at": None}
            if self.finish(sequence=self.sequence, **changes):
                self._emit_finished()

    def _emit_finished(self) -> None:
        """Write `bulk_finished`, in the transaction that ends it."""
        event = Event(
            tenant_id=self.tenant_id,
            type=Type.BULK_FINISHED,
            object_type="bulk",
            object_key=self.pk,
            object_id=str(self.pk),
            sequence=self.sequence,
        )
        rows = self.rows.order_by().values_list("status")
        counts = dict(rows.annotate(number=Count("pk")))
        data = {
            "definition_id": self.definition.definition_id,
            "rows": self.row_count,
            "offered": counts.get(BulkRow.Status.OFFERED, 0),
            "failed": counts.get(BulkRow.Status.FAILED, 0),
        }
        emit_event(event, data, self.State.DONE)

    def hide(self) -> None:
        """Show and offer it no more, so that it can be deleted. WrongState: it runs."""
        is_at_rest = Q(status=self.Status.DONE) | Q(paused_at__isnull=False)
        shown = Bulk.objects.filter(pk=self.pk, started_at__isnull=False)
        if shown.filter(is_at_rest).update(started_at=None, updated_at=clock.now()):
            return
        if running := shown.first():
            raise WrongState(running, [self.State.PAUSED, self.State.DONE])

    def count_rows(self) -> dict[str, int]:
        """How many rows are in each state: the credential's, once it is offered."""
        counted = self.rows.order_by().values_list("status", "credential__state")
        found = {}
        for status, state, number in counted.annotate(number=Count("pk")):
            is_offered = status == BulkRow.Status.OFFERED
            found[str((state or BulkRow.DELETED) if is_offered else status)] = number
        return found


class BulkRow(NotedRow, Record):
    """One offer of a bulk.

    Waiting → Offered | Failed;   Failed ─retry→ Waiting

    number: of the row in the file. values: sealed; None once it is offered, and if it
    can never be. recipient_name: of the link, as the values. mail_address: where its link may
    be mailed to, sealed; it stays until the bulk is deleted. errors: `[{column, code,
    message}]`, without values. Notes: of the credential that is to be offered, which
    has them then.
    """

    DELETED = "Deleted"  # in the API: the record of the credential was deleted

    class Status(models.TextChoices):
        WAITING = "Waiting"
        OFFERED = "Offered"
        FAILED = "Failed"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    bulk = models.ForeignKey(
        Bulk, on_delete=models.CASCADE, related_name="rows", db_index=False
    )
    number = models.PositiveIntegerField()
    status = models.CharField(
        max_length=7, choices=Status.choices, default=Status.WAITING
    )
    # The ids in the API of the connection or the hosted wallet; both empty: by a link.
    connection_id = models.CharField(max_length=128, blank=True)
    wallet_id = models.CharField(max_length=128, blank=True)
    values = models.BinaryField(null=True)
    recipient_name = models.BinaryField(null=True)
    mail_address = models.BinaryField(null=True)
    errors = models.JSONField(default=list)
    credential = models.ForeignKey(Credential, on_delete=models.SET_NULL, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["bulk", "number"], name="one_bulk_row_per_number"
            ),
            models.CheckConstraint(
                condition=~Q(status="Waiting") | Q(values__isnull=False),
                name="waiting_bulk_row_has_values",
            ),
            models.CheckConstraint(
                condition=~Q(status="Offered") | Q(values=None),
                name="offered_bulk_row_is_wiped",
            ),
        ]
        indexes = [
            models.Index(
                fields=["bulk", "status", "number"], name="bulk_rows_by_status"
            )
        ]

    @property
    def is_by_link(self) -> bool:
        return not self.connection_id and not self.wallet_id

    def __str__(self) -> str:
        return f"{self.bulk_id} {self.number}"
