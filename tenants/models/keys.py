"""API keys, and the data keys that seal the secrets of organizations."""

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.utils import timezone

from core.database.compiled_sql import CompiledQuery
from core.text.bounded_json import JSON
from tenants import tokens, vault
from tenants.models.names import name_of
from tenants.models.organizations import Provider, Tenant
from tenants.models.record import Record

ROTATION_OVERLAP = timedelta(hours=24)
MAX_LIVE_KEYS = 20  # of each kind that one organization or account has


class DataKey(Record):
    """The key that seals a tenant's secrets, wrapped by the master key (vault.py)."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, null=True)
    # Counts the data keys of the tenant; its sealed values name it.
    generation = models.PositiveSmallIntegerField(default=1, db_default=1)
    # When it replaced the one before; None for the first.
    rotated_at = models.DateTimeField(null=True)
    master_key_id = models.CharField(max_length=16)
    wrapped = models.BinaryField()
    # Of the system's data key: the key of keyed digests, once the master key from which
    # it was derived is not in force any more. Wrapped as well.
    digest_key = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                models.Value(1), condition=Q(tenant=None), name="one_system_data_key"
            )
        ]

    def __str__(self) -> str:
        return f"data key of {self.tenant_id or 'the system'}"


class FormerDataKey(Record):
    """A data key of a tenant that seals no more (data_key_rotation.py).

    It opens what it has sealed. Once that is sealed by the next one it is retired, and
    some time later deleted.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, null=True, related_name="former_data_keys"
    )
    generation = models.PositiveSmallIntegerField()
    master_key_id = models.CharField(max_length=16)
    wrapped = models.BinaryField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "generation"], name="one_data_key_per_generation"
            ),
            models.UniqueConstraint(
                fields=["generation"],
                condition=Q(tenant=None),
                name="one_system_data_key_per_generation",
            ),
        ]

    def __str__(self) -> str:
        return f"former data key of {self.tenant_id or 'the system'}"


class Scope(models.TextChoices):
    """What an access token may do. Each operation names the one that it needs."""

    READ = "read", "Read all but values"
    VALUES = "values", "Read values: of credentials, proofs, proposals and messages"
    CONNECT = "connect", "Connect, and write to the other side"
    ISSUE = "issue", "Issue and revoke"
    VERIFY = "verify", "Ask for proofs"
    WALLETS = "wallets", "Make hosted wallets, and act for their holders"
    LINKS = "links", "Give and end personal links"
    WEBHOOKS = "webhooks", "Use webhooks"
    ADMINISTRATION = "administration", "Change the organization and its keys"


class ApiKey(Record):
    """An access token, subscription key or provider key, stored as a digest.

    A key is live while it is neither revoked nor past `expires_at`. What it may do
    never changes: to change it, somebody makes another key.
    """

    class Kind(models.TextChoices):
        ACCESS_TOKEN = "access_token", "Access token"
        SUBSCRIPTION_KEY = "subscription_key", "Subscription key"
        PROVIDER_KEY = "provider_key", "Provider key"

    kind = models.CharField(max_length=16, choices=Kind.choices)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, null=True, related_name="keys"
    )
    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, null=True, related_name="keys"
    )
    name = models.CharField(max_length=100)
    # The SHA-256 by which it is found. Keys of version 0.1.0 get it at their first use.
    sha256 = models.BinaryField(unique=True, null=True)
    # The keyed digest, by which version 0.1.0 finds it. So both versions can serve.
    digest = models.BinaryField(unique=True)
    # The sealed key, if the provider API must show it again: for organizations that a
    # provider account created, if PROVIDER_KEYS_READABLE is set.
    sealed = models.BinaryField(null=True)
    # The beginning of the key, by which people recognize it.
    hint = models.CharField(max_length=16)
    last_used_at = models.DateTimeField(null=True)
    # The address it was used from then; of IPv6 the /64 network.
    last_used_address = models.CharField(max_length=45, default="", db_default="")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True)
    # Of an access token: what it may do; None for all, also for what is added later.
    scopes = ArrayField(models.CharField(max_length=16), null=True)
    # Of an access token: whether lists refuse filters that they do not know.
    strict = models.BooleanField(default=False, db_default=False)
    # The person who made it, also by another key, or who rotated it last.
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    # The day, as 2026-01-31, on which it last read values of each kind (audit.py).
    values_read_on = models.JSONField(default=dict, db_default={})

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.CheckConstraint(
                condition=Q(scopes=None) | Q(kind="access_token"),
                name="only_tokens_have_scopes",
            ),
            models.CheckConstraint(
                condition=Q(kind="provider_key", provider__isnull=False, tenant=None)
                | (~Q(kind="provider_key") & Q(provider=None, tenant__isnull=False)),
                name="key_has_one_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.hint}…"

    @classmethod
    def issue(
        cls,
        kind: str,
        owner: Tenant | Provider,
        name: str,
        lifetime: timedelta | None = None,
        *,
        scopes: Iterable[str] | None = None,
        strict: bool = False,
        made_by: User | None = None,
    ) -> tuple["ApiKey", str]:
        """Create a key. Return (row, secret). Provider keys belong to an account.

        The secret is stored as digests only, and sealed for an organization whose
        provider may read it (PROVIDER_KEYS_READABLE). lifetime: after which it ends by
        itself, or None. scopes: of an access token, or None for all. strict: of an
        access token. made_by: a person.
        """
        secret = tokens.generate_token(tokens.PREFIXES[kind])
        row = cls(kind=kind, name=name, strict=strict, made_by=made_by)
        if scopes is not None and set(scopes) != set(Scope.values):
            row.scopes = [scope for scope in Scope.values if scope in scopes]
        if lifetime:
            row.expires_at = timezone.now() + lifetime
        row.sha256 = tokens.digest_of(secret)
        row.digest = vault.keyed_digest(secret)
        row.hint = tokens.hint_of(secret)
        if isinstance(owner, Provider):
            row.provider = owner
        else:
            row.tenant = owner
            if owner.made_by_provider and settings.PROVIDER_KEYS_READABLE:
                vault.seal(row, "sealed", secret)
        row.save(force_insert=True)
        return row, secret

    @property
    def maker(self) -> str:
        """The name of the person who made it, or an empty text."""
        return name_of(self.made_by) if self.made_by else ""

    @staticmethod
    def is_of(tenant: Tenant) -> Q:
        """The condition of the keys of an organization and its provider account.

        Provider keys have access to all organizations of the account. So they are left
        out for organizations that were created with such a key.
        """
        own = Q(tenant=tenant)
        return own if tenant.made_by_provider else own | Q(provider=tenant.provider)

    @classmethod
    def live(cls) -> "models.QuerySet[ApiKey]":
        """Return the keys that are neither revoked nor expired, in no order."""
        not_expired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return cls.objects.filter(not_expired, revoked_at=None)

    @classmethod
    def find_live(cls, kind: str, secret: str) -> "ApiKey | None":
        """Return the live key with this secret, with its owner and network, or None.

        A malformed secret takes no query, an unknown one two.
        """
        return cls.find_live_by_kind({kind: secret}).get(kind)

    @classmethod
    def find_live_by_kind(cls, secrets: dict[str, str]) -> dict[str, "ApiKey"]:
        """Return the live keys with these secrets, by kind, with one query.

        secrets: by kind, at most two. If one of them is malformed, return none.
        """
        digests = cls.digest_all(secrets)
        if not digests:
            return {}
        found = _keys_with.all(digests[0], digests[-1])
        if len(found) < len(digests) and cls.adopt_keys(secrets):
            found = _keys_with.all(digests[0], digests[-1])
        return {key.kind: key for key in found if key.is_live}

    @classmethod
    def adopt_keys(cls, secrets: dict[str, str]) -> int:
        """Let keys be found by their SHA-256 whose row has the keyed digest only.

        Return how many there are. Two requests at once both find them.
        """
        return sum(
            cls.objects.filter(digest=vault.keyed_digest(secret)).update(
                sha256=tokens.digest_of(secret)
            )
            for secret in secrets.values()
        )

    @classmethod
    def digest_all(cls, secrets: dict[str, str]) -> list[bytes]:
        """Return the digests of these secrets; none if one of them is malformed.

        secrets: by kind.
        """
        digests = []
        for kind, secret in secrets.items():
            if not tokens.is_well_formed(secret, tokens.PREFIXES[kind]):
                return []
            digests.append(tokens.digest_of(secret))
        return digests

    @property
    def is_live(self) -> bool:
        """Whether the key is neither revoked nor expired."""
        if self.revoked_at:
            return False
        return not self.expires_at or self.expires_at > timezone.now()

    @property
    def can_rotate(self) -> bool:
        """False for a key that was rotated, and in its last hours."""
        if not self.is_live:
            return False
        end = timezone.now() + ROTATION_OVERLAP
        return not self.expires_at or self.expires_at > end

    @property
    def granted(self) -> frozenset[str]:
        """The scopes of an access token. The other kinds of keys have none."""
        if self.kind != self.Kind.ACCESS_TOKEN:
            return frozenset()
        return frozenset(Scope.values if self.scopes is None else self.scopes)

    def has_scope(self, scope: str | None) -> bool:
        return self.scopes is None or scope in self.scopes

    @property
    def owner(self) -> Tenant | Provider:
        """The account of a provider key, else the organization."""
        owner = self.tenant or self.provider
        assert owner  # by the constraint
        return owner

    @property
    def audit_facts(self) -> dict[str, JSON]:
        facts: dict[str, JSON] = {
            "kind": self.kind,
            "name": self.name,
            "begins_with": self.hint,
        }
        if self.strict:
            facts["strict"] = True
        return facts if self.scopes is None else facts | {"scopes": [*self.scopes]}

    def record_use(self, address: str) -> None:
        """Store the time and the address of this use, at most once a minute."""
        now = timezone.now()
        if not self.last_used_at or now - self.last_used_at > timedelta(minutes=1):
            ApiKey.objects.filter(pk=self.pk).update(
                last_used_at=now, last_used_address=address, updated_at=now
            )

    def mark_values_read(self, kind: str, day: str) -> bool:
        """Store that it has read values of this kind on this day, if it is the first."""
        marked = Func(
            F("values_read_on"),
            Value({kind: day}, models.JSONField()),
            template="%(expressions)s",
            arg_joiner=" || ",
        )
        rows = ApiKey.objects.filter(pk=self.pk)
        rows = rows.exclude(values_read_on__contains={kind: day})
        return bool(rows.update(values_read_on=marked))

    def revoke(self) -> None:
        now = timezone.now()
        live = ApiKey.objects.filter(pk=self.pk, revoked_at=None)
        live.update(revoked_at=now, updated_at=now)

    def end_after(self, overlap: timedelta) -> None:
        """Let it end then, unless it ends earlier."""
        now = timezone.now()
        end = now + overlap
        keys = ApiKey.live().filter(pk=self.pk)
        keys = keys.filter(Q(expires_at=None) | Q(expires_at__gt=end))
        keys.update(expires_at=end, updated_at=now)

    def rotate(
        self, overlap: timedelta = ROTATION_OVERLAP, *, made_by: User | None = None
    ) -> tuple["ApiKey", str]:
        """Create a successor, of the same lifetime and scopes. Return (row, secret).

        This key stays live for `overlap`, or less if it expires earlier. made_by: the
        person who rotates it. Two statements: in the caller's transaction.
        """
        lifetime = self.expires_at - self.created_at if self.expires_at else None
        self.end_after(overlap)
        return ApiKey.issue(
            self.kind,
            self.owner,
            self.name,
            lifetime,
            scopes=self.scopes,
            strict=self.strict,
            made_by=made_by,
        )


_keys_with = CompiledQuery(
    lambda one, other: ApiKey.objects.filter(sha256__in=[one, other]).select_related(
        "tenant__network", "tenant__provider", "provider"
    ),
    bytes,
    bytes,
)
