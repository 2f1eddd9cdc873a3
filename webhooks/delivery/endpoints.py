"""The addresses at which an organization wants to be told what happened, and how they fare."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.utils import timezone

from agency.core.errors import Conflict
from tenants import vault
from tenants.models import Record, Tenant
from webhooks.delivery.signing import new_secret
from webhooks.events import types

OVERLAP = timedelta(hours=24)  # in which a rotated secret still signs
LONGEST_SCHEDULE = timedelta(days=5)  # after which a call that failed has been given up
SLACK = timedelta(
    minutes=1
)  # between the time of an event and the end of its transaction
HANGING = 5  # calls in a row that took too long


class Webhook(Record):
    """One address. It is told in the dialect of the request that registered it.

    has_answered: with 2xx, at least once. Until then `timeouts` counts the calls in a row that it
    did not answer in time; `strikes` counts all other calls in a row that took too long.

    retry_unconfirmed: whether a call that was not answered in time is repeated; None: if the
    address has answered before.

    `failing_since` is when the first of failures in a row began. Disabled for its failures, it has
    lost calls since `lost_since`; `recover_since` tells from when on a recovery that is at work
    sends them again; it takes what ended before `updated_at`, so that what fails once more is not
    repeated for ever.
    """

    class Type(models.TextChoices):
        NOTIFICATION = "Notification"
        DELEGATED_ENDORSER = "DelegatedEndorser"
        ZAPIER = "Zapier"

    class Dialect(models.TextChoices):
        LITERAL = "literal", "As the interface is written"
        CLIENT = "client", "As the original clients read"

    class Reason(models.TextChoices):
        GONE = "gone", "The address answered that it is gone (410)"
        FAILING = "failing", "Every call failed for days"

    LIMITS = {Type.NOTIFICATION: 5}
    OTHER_LIMIT = 100
    NEVER_CALLED = (Type.DELEGATED_ENDORSER,)

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=2000)
    type = models.CharField(max_length=20, choices=Type.choices)
    dialect = models.CharField(max_length=8, choices=Dialect.choices)
    is_enabled = models.BooleanField(default=True)
    parameters = models.BinaryField(null=True)
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    message_types = ArrayField(models.CharField(max_length=30))
    retry_unconfirmed = models.BooleanField(null=True)
    has_answered = models.BooleanField(default=False)
    strikes = models.PositiveSmallIntegerField(default=0)
    timeouts = models.PositiveSmallIntegerField(default=0, db_default=0)
    failing_since = models.DateTimeField(null=True)
    disabled_reason = models.CharField(max_length=8, choices=Reason.choices, blank=True)
    lost_since = models.DateTimeField(null=True)
    recover_unconfirmed = models.BooleanField(default=False)
    recover_since = models.DateTimeField(null=True)
    notice_due_at = models.DateTimeField(null=True)
    sequence = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(
                fields=["notice_due_at"],
                condition=models.Q(notice_due_at__isnull=False),
                name="notices_due",
            ),
            models.Index(
                fields=["recover_since"],
                condition=models.Q(recover_since__isnull=False),
                name="recoveries_at_work",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"

    @classmethod
    @transaction.atomic
    def register(
        cls,
        tenant: Tenant,
        url: str,
        type: str,
        dialect: str,
        parameters: str | None = None,
        message_types: Sequence[str] | None = None,
        retry_unconfirmed: bool | None = None,
    ) -> "Webhook":
        """Holds the organization's row: two registrations at once cannot pass the limit."""
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        limit = cls.LIMITS.get(cls.Type(type), cls.OTHER_LIMIT)
        if cls.objects.filter(tenant=tenant, type=type).count() >= limit:
            message = f"You have {limit} webhooks of the type {type}. Delete one first."
            raise Conflict("webhook_limit", message)
        webhook = cls(tenant=tenant, url=url, type=type, dialect=dialect)
        webhook.message_types = list(message_types or webhook.usual_types())
        webhook.retry_unconfirmed = retry_unconfirmed
        vault.seal(webhook, "parameters", parameters)
        vault.seal(webhook, "secret", new_secret())
        webhook.save(force_insert=True)
        return webhook

    @classmethod
    def of(cls, tenant: Tenant) -> "models.QuerySet[Webhook]":
        return cls.objects.filter(tenant=tenant)

    @classmethod
    def that_want(cls, tenant_id: object, kind: str) -> "models.QuerySet[Webhook]":
        """The addresses that are told of events of this type."""
        rows = cls.objects.filter(tenant_id=tenant_id, is_enabled=True)
        rows = rows.filter(message_types__contains=[kind])
        return rows.exclude(type__in=cls.NEVER_CALLED)

    def usual_types(self) -> list[types.Type]:
        """What it is told unless it asks for certain types."""
        return (
            types.INTERFACE if self.dialect == self.Dialect.LITERAL else types.CLIENTS
        )

    def change(self, **changes: object) -> None:
        """`url`, `message_types` (empty: the usual ones), `retry_unconfirmed`. What the old address
        did is not held against a new one."""
        if "message_types" in changes:
            changes["message_types"] = changes["message_types"] or self.usual_types()
        if changes.get("url", self.url) != self.url:
            changes |= NEW | {"has_answered": False}
        self._update(**changes)

    def enable(self) -> None:
        """Who does this knows: a notice that is not sent yet is not needed any more."""
        self._update(is_enabled=True, disabled_reason="", notice_due_at=None, **NEW)

    def disable(self, lost_since: datetime | None = None, **changes: object) -> None:
        """What still waits is closed by housekeeping, not sent. What was lost before, or a recovery
        at work has not reached yet, stays lost until the next recovery."""
        lost = [one for one in (lost_since, self.lost_since, self.recover_since) if one]
        known = {"recover_since": None, "lost_since": min(lost, default=None)}
        self._update(is_enabled=False, **known, **changes)

    def recover(self, since: datetime | None = None, unconfirmed: bool = False) -> None:
        """Has everything that it wanted since then and did not get sent again, step by step.

        since: without it, since the first event that its failing calls were to tell.
        unconfirmed: also what was sent in full and never answered.
        """
        if not self.is_enabled:
            raise disabled()
        first = self.lost_since or timezone.now() - LONGEST_SCHEDULE
        since = since or first - SLACK
        self._update(
            recover_since=since, recover_unconfirmed=unconfirmed, lost_since=None
        )

    def secrets(self) -> list[str]:
        """Those that sign, the newest first."""
        secrets = [vault.unseal(self, "secret")]
        if self.previous_until and self.previous_until > timezone.now():
            secrets.append(vault.unseal(self, "previous_secret"))
        return secrets

    @transaction.atomic
    def rotate_secret(self) -> tuple[str, datetime]:
        """The new secret, and until when the one before signs too."""
        row = Webhook.objects.select_for_update().get(pk=self.pk)
        secret, until = new_secret(), timezone.now() + OVERLAP
        vault.seal(row, "previous_secret", vault.unseal(row, "secret"))
        vault.seal(row, "secret", secret)
        self._update(
            secret=row.secret, previous_secret=row.previous_secret, previous_until=until
        )
        return secret, until

    @property
    def is_called(self) -> bool:
        return self.type not in self.NEVER_CALLED

    @property
    def is_hanging(self) -> bool:
        """It is called once at a time."""
        return self.strikes >= HANGING

    @property
    def is_silent(self) -> bool:
        """It takes calls and never answers: it is not waited for long."""
        return not self.has_answered and self.timeouts >= HANGING

    def repeats(self, timed_out: bool) -> bool:
        """Whether a call that was sent in full and not answered is made again. Programs that never
        answer have processed what they got, and would do so a second time."""
        if self.retry_unconfirmed is not None:
            return self.retry_unconfirmed
        return self.has_answered or not timed_out

    def _update(self, **changes: object) -> None:
        Webhook.objects.filter(pk=self.pk).update(updated_at=timezone.now(), **changes)
        for name, value in changes.items():
            setattr(self, name, value)


NEW: dict[str, Any] = {
    "strikes": 0,
    "timeouts": 0,
    "failing_since": None,
}  # nothing against it


def disabled() -> Conflict:
    return Conflict(
        "webhook_disabled", "The webhook is disabled. Enable it, then send again."
    )
