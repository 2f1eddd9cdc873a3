"""Organizations (tenants), their people, keys and networks."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from tenants import tokens, vault


class Record(models.Model):
    """What every record has: a time-ordered id and two times."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True


class Network(models.Model):
    """A ledger or registry on which DIDs, schemas and definitions are published.

    genesis: of an Indy network, one transaction of a validator on each line. endorser_seed: of the
    agency's own DID there, with which it registers and endorses its organizations, if it has one.
    """

    tenant_id = None  # sealed under the system's data key

    class Kind(models.TextChoices):
        LOCAL = "local"
        INDY = "indy"

    id = models.SlugField(primary_key=True)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    sequence = models.BigIntegerField(default=0)
    genesis = models.TextField(blank=True)
    endorser_did = models.CharField(max_length=22, blank=True)
    endorser_seed = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="indy") & ~Q(genesis="")
                | Q(kind="local", genesis="", endorser_did=""),
                name="indy_networks_have_a_genesis",
            ),
            models.CheckConstraint(
                condition=Q(endorser_did="", endorser_seed=None)
                | ~Q(endorser_did="") & Q(endorser_seed__isnull=False),
                name="endorser_is_whole",
            ),
        ]

    def __str__(self):
        return self.name

    def next_sequence(self):
        """The number of the next write. Holds the row until the transaction ends."""
        Network.objects.filter(pk=self.pk).update(sequence=models.F("sequence") + 1)
        self.refresh_from_db(fields=["sequence"])
        return self.sequence


class Provider(Record):
    """An account that makes organizations and reaches only those it made.

    has_quotas: its organizations have limits, see quotas.py. person: who made it in the studio.
    """

    name = models.CharField(max_length=200)
    has_quotas = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the account and its organizations have the limits of QUOTA_….",
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    def __str__(self):
        return self.name


class Tenant(Record):
    """An organization. `public_id` is its id in the API, which its maker may choose.

    short_qr_codes: QR codes of its invitations hold the short link, not the invitation itself.
    """

    class Endorser(models.TextChoices):
        SHARED = "Shared"
        DEDICATED = "Dedicated"
        DELEGATED = "Delegated"

    public_id = models.UUIDField(unique=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200)
    image_url = models.URLField(max_length=2000, blank=True)
    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, related_name="tenants"
    )
    made_by_provider = models.BooleanField(default=False)
    region = models.CharField(max_length=100, blank=True)
    endorser = models.CharField(
        max_length=9, choices=Endorser.choices, default=Endorser.SHARED
    )
    short_qr_codes = models.BooleanField(default=False, db_default=False)
    people = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership")

    def __str__(self):
        return self.name


class Membership(Record):
    """A person in an organization."""

    class Role(models.TextChoices):
        OWNER = "owner", "Owner: everything, people included"
        DEVELOPER = "developer", "Developer: keys"
        VIEWER = "viewer", "Viewer: reads"

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.OWNER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership")
        ]

    def __str__(self):
        return f"{self.user} in {self.tenant}"

    @property
    def may_manage_keys(self):
        return self.role in (self.Role.OWNER, self.Role.DEVELOPER)

    def may_issue(self, kind):
        """A provider key can delete every organization of its account: it is for owners."""
        is_owner = self.role == self.Role.OWNER
        return is_owner or self.may_manage_keys and kind != ApiKey.Kind.PROVIDER_KEY


class DataKey(Record):
    """The key that seals a tenant's secrets, itself sealed by the master key (see vault.py)."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, null=True)
    master_key_id = models.CharField(max_length=16)
    wrapped = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                models.Value(1), condition=Q(tenant=None), name="one_system_data_key"
            )
        ]

    def __str__(self):
        return f"data key of {self.tenant_id or 'the system'}"


class ApiKey(Record):
    """An access token, subscription key or provider key: kept as a digest, shown once.

    Live while it is neither revoked nor past `expires_at`. Rotation makes a successor and lets the
    old key live on for an overlap. Keys of organizations that a provider made are kept sealed too,
    where PROVIDER_KEYS_READABLE says so: the provider API must show them again.
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
    digest = models.BinaryField(unique=True)
    sealed = models.BinaryField(null=True)
    hint = models.CharField(max_length=16)
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="provider_key", provider__isnull=False, tenant=None)
                | (~Q(kind="provider_key") & Q(provider=None, tenant__isnull=False)),
                name="key_has_one_owner",
            )
        ]

    def __str__(self):
        return f"{self.get_kind_display()} {self.hint}…"

    @classmethod
    def issue(cls, kind, owner, name):
        """Returns (row, secret)."""
        secret = tokens.generate(tokens.PREFIXES[kind])
        of_provider = kind == cls.Kind.PROVIDER_KEY
        row = cls(
            kind=kind, name=name, digest=vault.digest(secret), hint=tokens.hint(secret)
        )
        row.tenant, row.provider = (None, owner) if of_provider else (owner, None)
        if (
            not of_provider
            and owner.made_by_provider
            and settings.PROVIDER_KEYS_READABLE
        ):
            vault.seal(row, "sealed", secret)
        row.save(force_insert=True)
        return row, secret

    @classmethod
    def live(cls):
        now = timezone.now()
        return cls.objects.filter(
            Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None
        )

    @classmethod
    def find(cls, kind, secret):
        """The live key of this kind, or None."""
        return cls.find_each({kind: secret}).get(kind)

    @classmethod
    def find_each(cls, secrets):
        """The live keys of secrets given by kind, by kind, in one query; garbage costs none."""
        digests = [
            vault.digest(secret)
            for kind, secret in secrets.items()
            if tokens.is_well_formed(secret, tokens.PREFIXES[kind])
        ]
        if len(digests) < len(secrets):
            return {}
        keys = cls.live().select_related("tenant__network", "provider")
        return {key.kind: key for key in keys.filter(digest__in=digests)}

    @property
    def is_live(self):
        return not self.revoked_at and (
            not self.expires_at or self.expires_at > timezone.now()
        )

    @property
    def owner(self):
        return self.tenant or self.provider

    def used(self):
        """Notes the use, at most once a minute."""
        now = timezone.now()
        if not self.last_used_at or now - self.last_used_at > timedelta(minutes=1):
            ApiKey.objects.filter(pk=self.pk).update(last_used_at=now)

    def revoke(self):
        now = timezone.now()
        ApiKey.objects.filter(pk=self.pk, revoked_at=None).update(
            revoked_at=now, updated_at=now
        )

    def rotate(self, overlap=timedelta(hours=24)):
        """Returns (successor, secret); this key lives on for `overlap`, no longer than before."""
        end = timezone.now() + overlap
        keys = ApiKey.live().filter(pk=self.pk)
        keys.filter(Q(expires_at=None) | Q(expires_at__gt=end)).update(expires_at=end)
        return ApiKey.issue(self.kind, self.owner, self.name)


class IdempotencyKey(Record):
    """A write that was done, of an organization or a provider account, and its sealed answer.

    `object_model` and `object_id` name what it made, if anything: to answer from when a killed
    process left no answer. See idempotency.py.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True)
    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, null=True)
    key = models.CharField(max_length=255)
    operation = models.CharField(max_length=200)
    fingerprint = models.BinaryField()
    object_model = models.CharField(max_length=100, blank=True)
    object_id = models.CharField(max_length=100, blank=True)
    shown_once = models.BooleanField(default=False)
    answer = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "key"], name="one_write_per_tenant_key"
            ),
            models.UniqueConstraint(
                fields=["provider", "key"], name="one_write_per_provider_key"
            ),
            models.CheckConstraint(
                condition=Q(tenant=None) ^ Q(provider=None),
                name="idempotency_key_has_one_owner",
            ),
            models.CheckConstraint(
                condition=Q(shown_once=False) | Q(answer=None),
                name="secrets_are_not_kept",
            ),
        ]
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self):
        return f"{self.operation} {self.key}"


class AgreementAcceptance(Record):
    """Who accepted which transaction author agreement of a network: an organization for what it
    writes or, without one, the agency for what its endorser writes. Only the last one counts."""

    network = models.ForeignKey(Network, on_delete=models.CASCADE)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True)
    version = models.CharField(max_length=256)
    digest = models.CharField(max_length=64)
    mechanism = models.CharField(max_length=256)
    accepted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "tenant"],
                nulls_distinct=False,
                name="one_acceptance_each",
            )
        ]

    def __str__(self):
        return f"{self.tenant or 'the agency'}: {self.version} on {self.network}"


class Asset(Record):
    """A picture that is served publicly, under a random name."""

    LIMIT = 1000

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="assets"
    )
    name = models.CharField(max_length=40, unique=True)
    size = models.PositiveIntegerField()

    def __str__(self):
        return self.name

    @property
    def address(self):
        return f"{settings.PUBLIC_URL}/assets/{self.name}"
