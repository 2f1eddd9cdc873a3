"""Jobs that publish on a remote ledger."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q, QuerySet

from core.database import clock
from core.database.columns import ColumnValue
from core.errors import AgencyError, Unavailable
from core.work import transactions
from core.work.leases import LEASE, CausedJob
from credentials.ledgers import ledger_of
from credentials.ledgers.base import Ledger
from tenants import vault
from tenants.models import Record, Tenant

logger = logging.getLogger(__name__)


class PublishedElsewhere(Unavailable):
    """Another process has the job: this attempt must be rolled back."""

    def __init__(self) -> None:
        super().__init__("ledger_unavailable", "Another process publishes this.")


class Publication(Record, CausedJob):
    """A DID, its endpoint, a schema, definition or registry that is being published.

    prepared → submitted → published | refused. A definition is published together with
    its schema and its first registry. `object_id` is the object submitted last.

    material: all that the job needs, including private keys; sealed, and erased when
    the job ends.
    wanted: the digest of the request, by which an equal request finds the job.
    attended_until: when the call that waits for the result gives up; None once it has
    the result. If no call got the result, the next equal request gets it.
    idempotency_key: of the call that created the job, or "". A call with the same key
    gets the result too: the first one has ended, perhaps with its process.
    """

    class Kind(models.TextChoices):
        DID = "did"
        ENDPOINT = "endpoint"
        SCHEMA = "schema"
        DEFINITION = "definition"
        REGISTRY = "registry"

    # Seconds between the attempts, for about a week.
    SCHEDULE: ClassVar[tuple[int, ...]] = (2, 5, 10, 30, 60) + (300,) * 2016
    # A caller waits for these, so a refusal ends the job: the caller can change the
    # request.
    CALLER_VISIBLE = (Kind.SCHEMA, Kind.DEFINITION)

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    subject = models.CharField(max_length=600)
    object_id = models.CharField(max_length=600, blank=True)
    definition = models.ForeignKey(
        "credentials.CredentialDefinition", on_delete=models.CASCADE, null=True
    )
    wanted = models.CharField(max_length=64)
    attended_until = models.DateTimeField(null=True)
    idempotency_key = models.CharField(
        max_length=255, blank=True, default="", db_default=""
    )
    material = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=~Q(status="exhausted"),
                name="one_publication_of_each",
            ),
            models.CheckConstraint(
                condition=Q(status="pending") ^ Q(material=None),
                name="publication_is_wiped_at_its_end",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=Q(status="pending"),
                name="publication_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @classmethod
    def create_leased(
        cls,
        tenant: Tenant,
        kind: str,
        subject: str,
        payload: Mapping[str, Any],
        request: Any = None,
        **fields: ColumnValue,
    ) -> Self:
        """Create a job leased to the caller. IntegrityError if the subject has one.

        payload: what is sealed as `material`. request: what `wanted` is the digest of,
        as JSON. Other fields are those of the row.
        """
        job = cls(
            tenant=tenant,
            kind=kind,
            subject=subject,
            wanted=request_digest(request),
            **fields,
        )
        vault.seal(job, "material", payload)
        with transactions.atomic():
            job.lease().save(force_insert=True)
        return job

    @classmethod
    def not_refused(cls, kind: str, **filters: ColumnValue) -> QuerySet[Self]:
        """The jobs of a kind that are published or may still be published."""
        rows = cls.objects.filter(kind=kind, **filters)
        return rows.exclude(status=cls.Status.EXHAUSTED)

    @property
    def step(self) -> str:
        """One of prepared, submitted, published and refused."""
        if self.status == self.Status.PENDING:
            return "submitted" if self.object_id else "prepared"
        return "published" if self.status == self.Status.DONE else "refused"

    @property
    def ledger(self) -> Ledger:
        """The adapter of the organization's network."""
        return ledger_of(self.tenant.network)

    def payload(self) -> Any:
        """The unsealed content of the job."""
        return vault.unseal(self, "material")

    def record_submission(self, object_id: str) -> None:
        """Record the object that is written next, and renew the lease."""
        self._update_leased(
            self._fenced, object_id=object_id, lease_until=clock.now() + LEASE
        )

    def save_progress(self, payload: Mapping[str, Any]) -> None:
        """Store what was made so far, so that a later attempt uses the same."""
        material = vault.sealed_value(self, "material", payload)
        self._update_leased(self._fenced, material=material)

    def complete(self, object_id: str, **changes: ColumnValue) -> None:
        """End the job. Call it in the transaction that creates the published rows."""
        changes |= {"object_id": object_id, "material": None}
        self._update_leased(self.finish, **changes)
        self.status = self.Status.DONE

    def exhaust(self, error: str, **changes: ColumnValue) -> bool:
        return super().exhaust(error, material=None, **changes)

    def put_back(self, error: Exception) -> None:
        """Schedule the next attempt, or end the job.

        A refusal of the ledger ends a job for which a caller may wait (CALLER_VISIBLE).
        """
        if isinstance(error, AgencyError):
            logger.warning("%s is not published: %s", self, error.code)
        if isinstance(error, Unavailable) or not isinstance(error, AgencyError):
            super().put_back(error)
            return
        reason = f"{error.code}: {error.message}"
        if self.kind in self.CALLER_VISIBLE:
            self.exhaust(reason)
        else:
            self.retry(reason)

    def _update_leased(
        self, update: Callable[..., bool], **changes: ColumnValue
    ) -> None:
        if not update(**changes):
            raise PublishedElsewhere
        for field, value in changes.items():
            setattr(self, field, value)


def request_digest(request: Any) -> str:
    """The digest of a request, by which equal requests are found. request: JSON."""
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()
