"""Jobs that publish on a ledger which others run, and go on until all of it stands there.

A ledger cannot be written to inside a transaction, and may give no answer for hours. So what is to
be published is a row first, with its keys; the call that wants it does the work itself, and what it
leaves undone a worker completes. The rows that others see (schema, definition, registry) are made
when all of it is published, and not before.
"""

import hashlib
import json
import logging
import time
from datetime import timedelta

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core.errors import AgencyError, Conflict, Unavailable
from agency.core.queued_jobs import LEASE, QueuedJob
from credentials import ledgers
from tenants import vault
from tenants.models import Record, Tenant

logger = logging.getLogger(__name__)
_work = {}


class LostLease(Unavailable):
    """Somebody else has the job: nothing of this attempt may stay."""

    def __init__(self):
        super().__init__("ledger_unavailable", "Another process is at it.")


class Publication(Record, QueuedJob):
    """A DID, schema, definition or registry on its way to a ledger.

    prepared → submitted → published | refused. A definition takes its schema and its first registry
    along. `material`: all that the job needs, private keys included, sealed; erased at the end.

    `attended_until`: when the call that wants the result gives up; None once it has it. A result
    that nobody got is for the next equal call (`wanted`).
    """

    class Kind(models.TextChoices):
        DID = "did"
        SCHEMA = "schema"
        DEFINITION = "definition"
        REGISTRY = "registry"

    SCHEDULE = (2, 5, 10, 30, 60) + (300,) * 2016  # seconds: a week
    FOR_A_CALL = (
        Kind.SCHEMA,
        Kind.DEFINITION,
    )  # what is refused is its caller's to change

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    subject = models.CharField(max_length=600)
    object_id = models.CharField(max_length=600, blank=True)
    definition = models.ForeignKey(
        "credentials.CredentialDefinition", on_delete=models.CASCADE, null=True
    )
    wanted = models.CharField(max_length=64)
    attended_until = models.DateTimeField(null=True)
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
                fields=["due_at"], condition=Q(status="pending"), name="publication_due"
            )
        ]

    def __str__(self):
        return f"{self.kind} {self.subject}"

    @classmethod
    def prepare(cls, tenant, kind, subject, material, wanted=None, **fields):
        """A new job, leased to the caller. IntegrityError if the subject has one."""
        job = cls(
            tenant=tenant, kind=kind, subject=subject, wanted=digest(wanted), **fields
        )
        vault.seal(job, "material", material)
        with transaction.atomic():
            job.lease().save(force_insert=True)
        return job

    @classmethod
    def live(cls, kind, **where):
        """Of this kind those that are not refused."""
        return cls.objects.filter(kind=kind, **where).exclude(
            status=cls.Status.EXHAUSTED
        )

    @property
    def step(self):
        """prepared, submitted (`object_id` is being written), published or refused."""
        if self.status == self.Status.PENDING:
            return "submitted" if self.object_id else "prepared"
        return "published" if self.status == self.Status.DONE else "refused"

    @property
    def registry(self):
        return ledgers.registry_of(self.tenant.network)

    def run(self):
        """One attempt, by whoever has the lease. Raises what ended it, after noting it."""
        try:
            _work[self.kind](self, vault.unseal(self, "material"))
        except Unavailable as error:
            self._put_back(error.code)
            raise
        except AgencyError as error:
            reason = f"{error.code}: {error.message}"
            if self.kind in self.FOR_A_CALL:
                self.exhaust(reason, material=None)
            else:
                self._put_back(reason)
            raise

    def submits(self, object_id):
        """Notes what is written next, and takes another lease for it."""
        self._note(object_id=object_id, lease_until=timezone.now() + LEASE)

    def keep(self, material):
        """Notes what was made on the way, for an attempt that begins again."""
        self._note(material=vault.sealed(self, "material", material))

    def publishes(self, object_id, **changes):
        """Ends the job, in the transaction that makes the rows others see."""
        ended = {"object_id": object_id, "material": None, **changes}
        if not self.finish(**ended):
            raise LostLease
        for name, value in ended.items():
            setattr(self, name, value)
        self.status = self.Status.DONE

    def _note(self, **changes):
        if not self._fenced(**changes):
            raise LostLease
        for name, value in changes.items():
            setattr(self, name, value)

    def _put_back(self, reason):
        if self.attempts < len(self.SCHEDULE):
            self.retry(reason)
        else:
            self.exhaust(reason, material=None)


def work(kind):
    """Registers the function `(job, material)` that publishes this kind. It may be repeated."""

    def register(function):
        _work[kind] = function
        return function

    return register


def attend(job, is_ours):
    """The job, done by this call or by who is at it. 503 if the ledger does not take it now.

    is_ours: whether this call has the lease.
    """
    try:
        if is_ours or (job := claimed(job)).status == Publication.Status.PENDING:
            job.run()
    except Unavailable:
        Publication.objects.filter(pk=job.pk).update(attended_until=timezone.now())
        raise Unavailable(
            "ledger_unavailable",
            f"{job.tenant.network} has not taken this yet. It is kept and goes on by itself: send "
            "the same request again for its result.",
        ) from None
    if job.status == Publication.Status.EXHAUSTED:
        code, is_refused, message = job.last_error.partition(": ")
        if is_refused:
            raise Conflict(code, message)
        raise Unavailable(
            "ledger_unavailable", f"{job.tenant.network} took nothing for days."
        )
    Publication.objects.filter(pk=job.pk).update(attended_until=None)
    return job


def claimed(job):
    """The job, leased to the caller or over. LostLease if another one keeps it too long."""
    end = time.monotonic() + settings.LEDGER_TIMEOUT
    rows = Publication.objects.filter(pk=job.pk, status=Publication.Status.PENDING)
    rows.update(due_at=timezone.now())
    while job.status == Publication.Status.PENDING:
        if mine := Publication.claim(1, pk=job.pk):
            return mine[0]
        if time.monotonic() > end:
            raise LostLease
        time.sleep(0.1)
        job.refresh_from_db()
    return job


def attempt(job):
    """Runs a job leased to the caller; what ends it is logged, and noted in the job."""
    try:
        job.run()
    except AgencyError as error:
        logger.warning("%s is not published yet: %s", job, error.code)
    except Exception as error:  # a bug of ours ends neither the worker nor the job
        logger.exception("%s is not published", job)
        job._put_back(type(error).__name__)


def digest(wanted):
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()


def patience():
    """How long a call may attend its job."""
    return timedelta(seconds=4 * settings.LEDGER_TIMEOUT)
