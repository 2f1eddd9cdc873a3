"""Mails to the holders of links: a job, a row for each mail, what a day has had."""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from core.database import clock
from core.database.columns import ColumnValue
from core.errors import Conflict
from core.text.bounded_json import JSON
from core.work import transactions
from core.work.leases import LEASE
from credentials.models.bulk import Bulk
from credentials.models.credential import Credential
from credentials.models.pausable import PausableJob
from tenants import vault
from tenants.models import Record, Tenant
from webhooks.events.emit import emit_event
from webhooks.events.models import Event
from webhooks.events.types import Type

logger = logging.getLogger(__name__)
MAX_UNFINISHED = 10  # of one organization
RETRY_DELAY = timedelta(minutes=1)  # after the mail server was away
NEW_FOR = timedelta(days=1)
SHARE_OF_NEW = 10  # a new organization may send one in so many of the others' mails
# Between the attempts of a mail that the server refuses for now.
RETRY_ROW = tuple(timedelta(minutes=minutes) for minutes in (5, 30, 120, 480))


def is_on() -> bool:
    return bool(settings.ORGANIZATION_MAIL and settings.EMAIL_URL)


def require_on() -> None:
    """Raise 409 `mail_is_off` unless organizations may send mails here."""
    if not is_on():
        raise Conflict(
            "mail_is_off",
            "Organizations send no mails from here. Send the links yourself, or ask "
            "whoever runs this service for ORGANIZATION_MAIL.",
        )


class Mailing(PausableJob):
    """Mails with the links of offers.

    Running ⇄ Paused;   Running → Done;   Running | Paused → Stopped

    A worker leases it for a short turn and sends its next mails. At most one of an
    organization is leased at a time.

    bulk: None for one offer. is_reminder: to those who have not accepted. text: of the
    organization, sealed; None for ours. reply_to: an address, sealed.
    """

    class State(models.TextChoices):
        RUNNING = "Running"
        PAUSED = "Paused"
        STOPPED = "Stopped"
        DONE = "Done"

    claim_lock, task = 0x6D61696C, "agency.mails.tasks.send_mailings"
    steps: ClassVar[dict[tuple[str, str], str]] = {
        (State.PAUSED, State.RUNNING): "First resume it.",
        (State.RUNNING, State.PAUSED): "First pause it.",
        (State.DONE, State.RUNNING): "No mail waits any more.",
        (State.STOPPED, State.RUNNING): "It was stopped for good. Begin another one.",
    }

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    bulk = models.ForeignKey(
        Bulk,
        on_delete=models.CASCADE,
        db_constraint=False,
        null=True,
        related_name="mailings",
    )
    is_reminder = models.BooleanField(default=False)
    language = models.CharField(max_length=2)  # one of branding.LANGUAGES
    text = models.BinaryField(null=True)
    reply_to = models.BinaryField(null=True)
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "mailing"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="done", finished_at__isnull=False)
                | ~Q(status="done") & Q(finished_at=None),
                name="done_mailing_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(stopped_at=None) | Q(status="done"),
                name="stopped_mailing_is_done",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(status="pending"), name="mailing_due"
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def state(self) -> str:
        return self.State.STOPPED if self.stopped_at else super().state

    @classmethod
    def require_room(cls, tenant: Tenant) -> None:
        """409 `too_many_mailings` at the limit of unfinished ones. Locks the tenant."""
        tenant.lock_row()
        if cls.unfinished().filter(tenant=tenant).count() >= MAX_UNFINISHED:
            raise Conflict(
                "too_many_mailings",
                f"Your organization has {MAX_UNFINISHED} mailings that are not done. "
                "Wait until one is, or stop one.",
            )

    @transactions.atomic()
    def stop(self) -> None:
        """End it for good: what was not sent is not sent. WrongState: it has ended."""
        now = clock.now()
        rows = Mailing.objects.filter(pk=self.pk, status=self.Status.PENDING)
        if not rows.update(
            status=self.Status.DONE,
            paused_at=None,
            stopped_at=now,
            finished_at=now,
            updated_at=now,
            lease_owner=None,
            lease_until=None,
        ):
            self._refuse([self.State.RUNNING, self.State.PAUSED])
        waiting = self.rows.filter(status=MailingRow.Status.WAITING)
        waiting.update(status=MailingRow.Status.STOPPED, updated_at=now)
        self._emit_finished(self.State.STOPPED)

    def put_back(self, error: Exception) -> None:
        """Where the mail server is away, the whole mailing waits. Others are raised."""
        if not isinstance(error, OSError):  # smtplib's errors are, too
            raise error
        logger.warning("the mail server takes no mails now: %s", type(error).__name__)
        self.try_later(RETRY_DELAY, "mail_server_unavailable")

    @transactions.atomic()
    def end_turn(self) -> None:
        """End the lease. Without mails that wait or are being sent it is done."""
        rows = Mailing.objects.select_for_update()
        if not rows.filter(pk=self.pk, lease_owner=self.lease_owner).exists():
            return
        now = clock.now()
        left = self.rows.filter(status__in=MailingRow.UNFINISHED)
        times = left.aggregate(at=Min(Coalesce("lease_until", "due_at")))
        next_due = times["at"]
        if next_due is None:
            if self.finish(finished_at=now, updated_at=now):
                self._emit_finished(self.State.DONE)
        else:
            due_at = max(now, next_due)
            self._fenced(
                lease_owner=None,
                lease_until=None,
                due_at=due_at,
                last_error="",
                updated_at=now,
            )

    def _emit_finished(self, state: str) -> None:
        """Write `mailing_finished`, in the transaction that ends it."""
        event = Event(
            tenant_id=self.tenant_id,
            type=Type.MAILING_FINISHED,
            object_type="mailing",
            object_key=self.pk,
            object_id=str(self.pk),
            sequence=1,
        )
        counts = self.count_rows()
        data: dict[str, JSON] = {
            "mails": sum(counts.values()),
            "sent": counts.get(MailingRow.Status.SENT, 0),
        }
        if self.bulk_id:
            data["bulk_id"] = str(self.bulk_id)
        emit_event(event, data, state)

    def rows_with_reason(self) -> "QuerySet[MailingRow]":
        """What was not sent, or was refused for now, in the order of the file."""
        sent = (
            MailingRow.Status.SENDING, MailingRow.Status.SENT,
            MailingRow.Status.STOPPED,
        )  # fmt: skip
        rows = self.rows.exclude(status__in=sent)
        waits = Q(status=MailingRow.Status.WAITING, code="")
        return rows.exclude(waits).order_by("number", "pk")

    def count_rows(self) -> dict[str, int]:
        """How many mails are in each state."""
        counted = self.rows.order_by().values_list("status")
        return dict(counted.annotate(number=Count("pk")))


class MailingRow(Record):
    """One mail with the link of an offer.

    Waiting → Sending → Sent | Refused | Unknown;   Waiting → Skipped | Stopped | Refused

    It is Sending from just before the command DATA, and never Waiting again: when its
    lease ends, nobody knows whether the mail server has it (Unknown). Of the mails of
    an offer one at most is not Refused, Skipped or Stopped, and as many reminders.

    number: of the row in the file. address: sealed.
    code: why it is Refused or Skipped.
    """

    class Status(models.TextChoices):
        WAITING = "Waiting"
        SENDING = "Sending"
        SENT = "Sent"
        REFUSED = "Refused"
        UNKNOWN = "Unknown"
        SKIPPED = "Skipped"
        STOPPED = "Stopped"

    UNFINISHED: ClassVar = (Status.WAITING, Status.SENDING)
    # It may have been sent, or will be.
    COUNTED: ClassVar = (Status.WAITING, Status.SENDING, Status.SENT, Status.UNKNOWN)

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    mailing = models.ForeignKey(
        Mailing,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="rows",
        db_index=False,
    )
    number = models.PositiveIntegerField()
    # Who deletes the record of a credential deletes the address too.
    credential = models.ForeignKey(
        Credential, on_delete=models.CASCADE, db_constraint=False, related_name="mails"
    )
    is_reminder = models.BooleanField(default=False)
    address = models.BinaryField()
    status = models.CharField(
        max_length=7, choices=Status.choices, default=Status.WAITING
    )
    code = models.CharField(max_length=40, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    lease_owner = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["credential", "is_reminder"],
                condition=Q(status__in=("Waiting", "Sending", "Sent", "Unknown")),
                name="one_mail_of_an_offer",
            ),
            models.CheckConstraint(
                condition=~Q(status="Sending") | Q(lease_until__isnull=False),
                name="sent_mail_is_leased",
            ),
        ]
        indexes = [
            models.Index(
                fields=["mailing", "status", "number"], name="mails_by_status"
            ),
            models.Index(
                fields=["lease_until"],
                condition=Q(status="Sending"),
                name="mails_being_sent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mailing_id} {self.number}"

    def unsealed_address(self) -> str:
        return str(vault.unseal(self, "address"))

    def change(
        self, sources: Iterable[str], status: str, **changes: ColumnValue
    ) -> bool:
        """Move it by one guarded UPDATE. Return False if it is in another state."""
        rows = MailingRow.objects.filter(pk=self.pk, status__in=sources)
        return bool(rows.update(status=status, updated_at=clock.now(), **changes))

    @transactions.atomic()
    def begin_sending(self, mailing: Mailing) -> bool:
        """Mark it as being sent, and count it for the day. Commits before it returns.

        False unless it waits, and the mailing is still leased to the caller and not
        paused. DayIsFull: the organization has sent as many as it may today.
        """
        locked = Mailing.objects.select_for_update(no_key=True).filter(
            pk=mailing.pk,
            lease_owner=mailing.lease_owner,
            status=Mailing.Status.PENDING,
            paused_at=None,
        )
        if not locked.exists():
            return False
        self.lease_owner = mailing.lease_owner
        lease_until = clock.now() + LEASE
        if not self.change(
            [self.Status.WAITING],
            self.Status.SENDING,
            lease_owner=self.lease_owner,
            lease_until=lease_until,
        ):
            return False
        MailDay.take_one(mailing.tenant)
        return True

    def end_sending(self, status: str, code: str = "") -> bool:
        """What the mail server answered. Also after the lease, if nobody else has it."""
        rows = MailingRow.objects.filter(
            pk=self.pk,
            lease_owner=self.lease_owner,
            status__in=(self.Status.SENDING, self.Status.UNKNOWN),
        )
        return bool(
            rows.update(
                status=status, code=code, lease_until=None, updated_at=clock.now()
            )
        )

    def refuse_for_now(self, code: str) -> None:
        """The server refused it before DATA, and may take it later."""
        if self.attempts >= len(RETRY_ROW):
            self.change([self.Status.WAITING], self.Status.REFUSED, code=code)
            return
        self.change(
            [self.Status.WAITING],
            self.Status.WAITING,
            code=code,
            attempts=self.attempts + 1,
            due_at=clock.now() + RETRY_ROW[self.attempts],
        )

    @classmethod
    def end_lost(cls) -> int:
        """Mark as Unknown what a process was sending that has ended."""
        lost = cls.objects.filter(
            status=cls.Status.SENDING, lease_until__lt=clock.now()
        )
        return lost.update(
            status=cls.Status.UNKNOWN, lease_until=None, updated_at=clock.now()
        )


class DayIsFull(Exception):
    """The organization has sent as many mails today as it may."""


class MailDay(models.Model):
    """How many mails an organization has sent on a day, by UTC."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    day = models.DateField()
    sent = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "day"], name="one_row_a_mail_day")
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day}"

    @classmethod
    def limit_of(cls, tenant: Tenant) -> int:
        """Mails a day. A new organization has a small share: nobody knows it yet."""
        limit: int = settings.ORGANIZATION_MAILS_A_DAY
        is_new = tenant.created_at > clock.now() - NEW_FOR
        return max(1, limit // SHARE_OF_NEW) if is_new else limit

    @classmethod
    def left_today(cls, tenant: Tenant) -> int:
        rows = cls.objects.filter(tenant=tenant, day=clock.now().date())
        sent = rows.values_list("sent", flat=True).first() or 0
        return max(0, cls.limit_of(tenant) - sent)

    @staticmethod
    def next_day() -> datetime:
        midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + timedelta(days=1)

    @classmethod
    def take_one(cls, tenant: Tenant) -> None:
        """Count one more mail. Raises DayIsFull."""
        day, limit = clock.now().date(), cls.limit_of(tenant)
        rows = cls.objects.filter(tenant=tenant, day=day)
        if not rows.exists():
            row = MailDay(tenant=tenant, day=day)
            MailDay.objects.bulk_create([row], ignore_conflicts=True)
        if not rows.filter(sent__lt=limit).update(sent=F("sent") + 1):
            raise DayIsFull
