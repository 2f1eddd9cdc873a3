"""Webhooks: the addresses that an organization registered for its events."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models.functions import Collate, Left

from core.database import clock
from core.database.columns import Columns, ColumnValue
from core.errors import Conflict, NotFound
from tenants import vault
from tenants.models import Record, Tenant
from webhooks import kinds
from webhooks.delivery.signing import new_secret
from webhooks.events import types

SECRET_OVERLAP = timedelta(hours=24)  # calls are signed with the old secret too
# A recovery looks back so far if its caller names no start and the webhook was not
# disabled since the last one.
DEFAULT_RECOVERY_PERIOD = timedelta(days=5)
# An event may be committed this long after its time.
TRANSACTION_MARGIN = timedelta(minutes=1)
INDEXED_URL = 200  # characters of the address
FIRST_SHARE = 4  # calls at a time to an address of which nothing is known
SLOW_LIMIT = 5  # consecutive slow calls, or timeouts, until calls are limited


def first_share() -> int:
    """How many calls at a time an address gets of which nothing is known."""
    return max(1, min(FIRST_SHARE, settings.WEBHOOK_THREADS // 4, max_share()))


def max_share() -> int:
    """How many calls at a time an address gets at most, by all workers."""
    return max(1, settings.WEBHOOK_ADDRESS_CALLS)


def url_prefix() -> Collate:
    """Return the expression by which support finds webhooks by their address.

    The beginning only: an index cannot hold the longest addresses.
    """
    return Collate(Left("url", INDEXED_URL), "C")


def mask_url(url: str) -> str:
    """Return scheme, host and port of an address, and `…` for what follows."""
    parts = urlsplit(url)
    begun = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    return begun if parts.path in ("", "/") and not parts.query else f"{begun}…"


class Webhook(Record):
    """A registered address, with the state of its recent calls.

    `dialect` is the dialect of the request that registered it. It determines the
    default `message_types`.
    """

    Type = kinds.Kind

    class Dialect(models.TextChoices):
        LITERAL = "literal", "As the interface is written"
        CLIENT = "client", "As the original clients read"

    class Reason(models.TextChoices):
        GONE = "gone", "The address answered that it is gone (410)"
        FAILING = "failing", "Every call failed for days"

    MAX_OF_TYPE = {Type.NOTIFICATION: 5}
    MAX_OF_OTHER_TYPES = 100

    # What a claim found, not stored: how many calls it may get at a time, and whether
    # its due deliveries use this up.
    share = 1
    is_full = False

    api_id = "pk"
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=2000)
    type = models.CharField(max_length=20, choices=Type.choices)
    dialect = models.CharField(max_length=8, choices=Dialect.choices)
    is_enabled = models.BooleanField(default=True)
    # Encrypted. The original clients send it; it is stored and not used.
    parameters = models.BinaryField(null=True)
    # Both encrypted. The previous one also signs calls, until `previous_until`.
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    # The event types that it receives. Never empty.
    message_types = ArrayField(models.CharField(max_length=30))
    # Whether to retry a call that got no response. None: see should_retry_unconfirmed.
    retry_unconfirmed = models.BooleanField(null=True, db_column="retry_unanswered")
    # Whether it has answered a call with 2xx at least once.
    has_answered = models.BooleanField(default=False)
    # How many events one call may have, in a JSON array. None: one, which is the body.
    batch = models.PositiveSmallIntegerField(null=True)
    # Consecutive slow calls. From SLOW_LIMIT on, it gets only one concurrent call.
    strikes = models.PositiveSmallIntegerField(default=0)
    # How many calls at a time it has earned by answering well, beside the first ones.
    extra_calls = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Consecutive calls that timed out, counted until its first 2xx.
    timeouts = models.PositiveSmallIntegerField(default=0, db_default=0)
    # The first of the current run of failures; None while calls succeed.
    failing_since = models.DateTimeField(null=True)
    # Why we disabled it. Empty if it is enabled, or its owner disabled it.
    disabled_reason = models.CharField(
        max_length=8,
        choices=Reason.choices,
        blank=True,
    )
    # The time of the first event that it missed. Set when it is disabled, by whomever;
    # the next recovery starts there, and empties it.
    lost_since = models.DateTimeField(null=True)
    # Whether the running recovery also resends calls that got no response.
    recover_unconfirmed = models.BooleanField(default=False)
    # The running recovery resends events from this time on. None if none is running.
    recover_since = models.DateTimeField(null=True)
    # When it was started. None if none is running, or if version 0.1.0 started it.
    recovery_started_at = models.DateTimeField(null=True)
    # When to email the organization's members that it was disabled.
    notice_due_at = models.DateTimeField(null=True)
    # The number of events about this webhook itself.
    sequence = models.PositiveIntegerField(default=0)
    # The person who made it, also by a key.
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )

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
            models.Index(url_prefix(), name="webhook_by_url"),
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
        batch: int | None = None,
        made_by: User | None = None,
    ) -> "Webhook":
        """Create a webhook with a new secret.

        In one transaction, which locks the organization for the count. message_types:
        empty for those of the dialect. Others: see the fields.
        409 `webhook_limit` if the organization has too many of this type.
        """
        # The lock keeps concurrent registrations from exceeding the limit.
        tenant.lock_row()
        limit = cls.MAX_OF_TYPE.get(cls.Type(type), cls.MAX_OF_OTHER_TYPES)
        if cls.objects.filter(tenant=tenant, type=type).count() >= limit:
            message = f"You have {limit} webhooks of the type {type}. Delete one first."
            raise Conflict("webhook_limit", message)
        webhook = cls(
            tenant=tenant,
            url=url,
            type=type,
            dialect=dialect,
            batch=batch,
            made_by=made_by,
        )
        webhook.message_types = list(message_types or webhook.default_message_types())
        webhook.retry_unconfirmed = retry_unconfirmed
        vault.seal(webhook, "parameters", parameters)
        vault.seal(webhook, "secret", new_secret())
        webhook.save(force_insert=True)
        return webhook

    @classmethod
    def for_tenant(cls, tenant: Tenant) -> "models.QuerySet[Webhook]":
        """Return the webhooks of an organization, in no order."""
        return cls.objects.filter(tenant=tenant)

    def default_message_types(self) -> list[types.Type]:
        """The event types of a webhook that was registered without any."""
        if self.dialect == self.Dialect.LITERAL:
            return types.INTERFACE
        return types.CLIENTS

    @transaction.atomic
    def change_settings(self, **changes: ColumnValue) -> None:
        """Change `url`, `message_types` (empty: the defaults) and other choices.

        A new address resets the counters: failures of the old one do not count.
        """
        self.lock_and_reload()
        if "message_types" in changes:
            chosen = changes["message_types"]
            changes["message_types"] = chosen or self.default_message_types()
        if changes.get("url", self.url) != self.url:
            changes |= CLEAN_RECORD | {"has_answered": False}
        self.update_columns(**changes)

    @transaction.atomic
    def enable(self) -> None:
        """Start calls again and reset the counters.

        In one transaction, which locks the row. A notice that was not sent yet is
        dropped: the user who enables it knows.
        """
        self.lock_and_reload()
        self.update_columns(
            is_enabled=True, disabled_reason="", notice_due_at=None, **CLEAN_RECORD
        )

    @transaction.atomic
    def disable(self, lost_since: datetime, **changes: ColumnValue) -> None:
        """Stop calls. recovery.py closes the pending deliveries. Called by health.py.

        In one transaction, which locks the row. `lost_since` becomes the earliest of
        the given time, its old value and the position of a running recovery: the next
        recovery must cover all of them. changes: other columns to set.
        """
        self.lock_and_reload()
        times = [lost_since, self.lost_since, self.recover_since]
        earliest = min(time for time in times if time)
        self.update_columns(
            is_enabled=False,
            recover_since=None,
            recovery_started_at=None,
            lost_since=earliest,
            **changes,
        )

    @transaction.atomic
    def start_recovery(
        self, since: datetime | None = None, unconfirmed: bool = False
    ) -> None:
        """Start resending all missed events. recovery.py does the work.

        since: the time to start from; default: `lost_since`, the first event that it
        missed when it was disabled, else DEFAULT_RECOVERY_PERIOD ago.
        unconfirmed: also resend calls that were sent in full and got no response.
        Raises Conflict `webhook_disabled`.
        """
        self.lock_and_reload()
        if not self.is_enabled:
            raise disabled_error()
        if since is None:
            first = self.lost_since or clock.now() - DEFAULT_RECOVERY_PERIOD
            since = first - TRANSACTION_MARGIN
        self.update_columns(
            recover_since=since,
            recovery_started_at=clock.now(),
            recover_unconfirmed=unconfirmed,
            lost_since=None,
        )

    @property
    def is_never_called(self) -> bool:
        """Whether webhooks of its type are stored and never called.

        Who makes a delivery asks this; EMIT_SQL asks for NEVER_CALLED itself.
        """
        return self.type in kinds.NEVER_CALLED

    def require_callable(self) -> None:
        """Raise Conflict `webhook_not_called`, or `webhook_disabled`, if it is so."""
        if self.is_never_called:
            message = f"Webhooks of the type {self.type} are never called."
            raise Conflict("webhook_not_called", message)
        if not self.is_enabled:
            raise disabled_error()

    @property
    def masked_url(self) -> str:
        """Where it is, for people who may not change it. The rest may hold a token."""
        return mask_url(self.url)

    @property
    def audit_facts(self) -> dict[str, str]:
        # The rest of the address may hold a token.
        return {"type": self.type, "host": urlsplit(self.url).hostname or ""}

    def signing_secrets(self) -> list[str]:
        """The secrets that calls are signed with now, the newest first."""
        secrets = [vault.unseal(self, "secret")]
        if self.previous_until and self.previous_until > clock.now():
            secrets.append(vault.unseal(self, "previous_secret"))
        return secrets

    @transaction.atomic
    def rotate_secret(self) -> tuple[str, datetime]:
        """Replace the secret.

        Return the new one, and the time until which calls are signed with the previous
        one too.
        """
        self.lock_and_reload()
        secret = new_secret()
        previous_until = clock.now() + SECRET_OVERLAP
        vault.seal(self, "previous_secret", vault.unseal(self, "secret"))
        vault.seal(self, "secret", secret)
        self.update_columns(
            secret=self.secret,
            previous_secret=self.previous_secret,
            previous_until=previous_until,
        )
        return secret, previous_until

    @property
    def is_slow(self) -> bool:
        """Whether its last calls were all slow. It then gets one call at a time."""
        return self.strikes >= SLOW_LIMIT

    @property
    def own_share(self) -> int:
        """How many calls at a time it may get, if no other webhook has its address."""
        if self.is_slow:
            return 1
        return min(first_share() + self.extra_calls, max_share())

    @property
    def is_unresponsive(self) -> bool:
        """Whether it never answered and its last calls timed out.

        Its calls get a short timeout.
        """
        return not self.has_answered and self.timeouts >= SLOW_LIMIT

    def should_retry_unconfirmed(self, timed_out: bool) -> bool:
        """Whether to retry a call that was sent in full and got no response.

        A receiver that never answers may still process each call, and would process it
        again. So its timeouts are not retried unless `retry_unconfirmed` is set.
        """
        if self.retry_unconfirmed is not None:
            return self.retry_unconfirmed
        return self.has_answered or not timed_out

    def lock_and_reload(self) -> None:
        """Lock the row until the end of the transaction, and read it again.

        Raises NotFound if it was deleted.
        """
        rows = Webhook.objects.select_for_update(no_key=True)
        try:
            self.refresh_from_db(from_queryset=rows)
        except Webhook.DoesNotExist:
            raise NotFound("not_found", "The webhook was deleted.") from None

    def update_columns(self, **changes: ColumnValue) -> None:
        """Write columns and `updated_at`, in the database and on this object."""
        changes["updated_at"] = clock.now()
        Webhook.objects.filter(pk=self.pk).update(**changes)
        for name, value in changes.items():
            setattr(self, name, value)


CLEAN_RECORD: Columns = {
    "strikes": 0,
    "extra_calls": 0,
    "timeouts": 0,
    "failing_since": None,
}


def disabled_error() -> Conflict:
    message = "The webhook is disabled. Enable it, then try again."
    return Conflict("webhook_disabled", message)
