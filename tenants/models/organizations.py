"""Organizations (tenants), and the provider accounts that created them."""

import re
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models
from uuid_utils.compat import uuid7

from core.database.collation import case_insensitive
from core.database.compiled_sql import CompiledQuery
from core.errors import NotFound, OrganizationFrozen
from tenants.models.networks import Network
from tenants.models.record import LiveRows, Record

PICTURE = re.compile(
    r"[A-Za-z0-9_-]+\.(?:png|jpg|webp|gif)"
)  # as tenants/pictures.py names it
MAX_VISITOR_WALLETS = 100_000  # a day, by one link


class Provider(Record):
    """An account that creates organizations over the API and may access only those."""

    name = models.CharField(max_length=200)
    # Whether its organizations have quotas; see quotas.py.
    has_quotas = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the account and its organizations have the limits of "
        "QUOTA_….",
    )
    # The user who created the account, if it was created in the studio.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )

    def __str__(self) -> str:
        return self.name


class Tenant(Record):
    """An organization.

    `objects` has those that are not deleted. Of a deleted one (`deleted_at`) a worker
    removes the rows, and at last its own: tenants/lifecycle/erasure.py.
    """

    class Endorser(models.TextChoices):
        SHARED = "Shared"
        DEDICATED = "Dedicated"
        DELEGATED = "Delegated"

    class InvitationProtocol(models.TextChoices):
        CONNECTIONS = "connections/1.0", "Connections 1.0, which older wallets read"
        OUT_OF_BAND = "out-of-band", "Out-of-band, which newer wallets read"
        BOTH = "both", "Both: a wallet takes the one that it reads"

    class InvalidProofAnswer(models.TextChoices):
        PROBLEM_REPORT = "problem-report", "A problem report"
        ACK = "ack", "An ack that says false"

    # The id in the API, which a provider account may choose.
    public_id = models.UUIDField(unique=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200)
    image_url = models.URLField(max_length=2000, blank=True)
    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, related_name="tenants"
    )
    # Whether a provider account created it over the API, and so has access to it.
    made_by_provider = models.BooleanField(default=False)
    region = models.CharField(max_length=100, blank=True)
    endorser = models.CharField(
        max_length=9, choices=Endorser.choices, default=Endorser.SHARED
    )
    # Whether QR codes of invitations contain the short link, not the whole invitation.
    short_qr_codes = models.BooleanField(default=False, db_default=False)
    # How calls of the API, the studio and kiosks invite by a link unless they say it.
    invitation_protocol = models.CharField(
        max_length=15,
        choices=InvitationProtocol.choices,
        default=InvitationProtocol.CONNECTIONS,
        db_default=InvitationProtocol.CONNECTIONS,
    )
    # How a proof that is not valid is answered: with a problem report (RFCs 0037 and
    # 0454), or with an ack that names the result, as ACA-Py does.
    invalid_proof_answer = models.CharField(
        max_length=14,
        choices=InvalidProofAnswer.choices,
        default=InvalidProofAnswer.PROBLEM_REPORT,
        db_default=InvalidProofAnswer.PROBLEM_REPORT,
    )
    # Whether the wallet API reaches the organization's own wallet, so that it may hold
    # credentials and prove.
    own_wallet_api = models.BooleanField(default=False, db_default=False)
    # Whether the studio shows to all members for whom credentials are, not only to
    # roles with Permission.NAMES.
    names_for_all = models.BooleanField(default=False, db_default=False)
    # Whether people are found by their names (credentials/models/name_search.py).
    name_search = models.BooleanField(default=True, db_default=True)
    # Whether the pages of links let visitors make a wallet here.
    visitor_wallets = models.BooleanField(default=False, db_default=False)
    # How many a day by one link that many may use.
    visitor_wallets_a_day = models.PositiveIntegerField(
        default=500,
        db_default=500,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_VISITOR_WALLETS)],
    )
    # Whether it is for tests only: it has simulated holders (sandbox/), and its data is
    # deleted after some weeks. Chosen when it is created, and never changed.
    is_test = models.BooleanField(default=False, db_default=False)
    # Whether the studio lets only members in who have a second factor.
    requires_second_factor = models.BooleanField(default=False, db_default=False)
    # For the pages that holders see; see branding.py for the shapes.
    primary_color = models.CharField(
        max_length=7, blank=True, default="", db_default=""
    )
    secondary_color = models.CharField(
        max_length=7, blank=True, default="", db_default=""
    )
    default_language = models.CharField(
        max_length=8, blank=True, default="", db_default=""
    )
    wallet_apps = models.JSONField(null=True)
    return_urls = models.JSONField(null=True)
    # After how many days the values, and the records, of finished exchanges of the
    # organization's own wallet are deleted. None: never.
    values_kept_days = models.PositiveSmallIntegerField(null=True, blank=True)
    exchanges_kept_days = models.PositiveSmallIntegerField(null=True, blank=True)
    people = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership")
    deleted_at = models.DateTimeField(null=True, editable=False)
    # While it moves to another installation, or is deleted soon, nobody acts for it
    # here: freezing.py.
    frozen_at = models.DateTimeField(null=True, editable=False)
    # When it will be deleted, as its own key asked, and frozen until then: deletion.py.
    deletion_due_at = models.DateTimeField(null=True, editable=False)
    # When its owners are to be told that it is deleted soon.
    notice_due_at = models.DateTimeField(null=True, editable=False)
    # When it came from another installation, whose cursors do not open here.
    imported_at = models.DateTimeField(null=True, editable=False)

    objects = LiveRows()
    # Of its own wallet, where a query has read them too (with_issuer()).
    issuer_did: str
    issuer_key: str

    class Meta:
        indexes = [
            models.Index(case_insensitive("name"), name="tenant_by_name"),
            models.Index(
                fields=["deletion_due_at"],
                condition=models.Q(deletion_due_at__isnull=False),
                name="tenant_deleted_soon",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(deletion_due_at=None)
                | models.Q(frozen_at__isnull=False),
                name="tenant_deleted_soon_is_frozen",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def logo_path(self) -> str:
        """The path of the logo on pages. Empty if it is on another host."""
        return Asset.path_of(self.image_url)

    @property
    def invites_out_of_band(self) -> bool:
        """Whether links carry out-of-band invitations, perhaps beside others."""
        return self.invitation_protocol != self.InvitationProtocol.CONNECTIONS

    @property
    def apps_read_network(self) -> bool:
        """Whether wallet apps can read its network, and so take its cards.

        They read Indy ledgers; the local network only if they are made for it. An
        organization that has such an app names it.
        """
        return bool(self.wallet_apps) or self.network.kind != Network.Kind.LOCAL

    @property
    def audit_facts(self) -> dict[str, str]:
        return {"name": self.name}

    def require_thawed(self) -> None:
        """Raise 503 while nobody acts for it here.

        `organization_frozen` while it moves to another installation,
        `organization_deleted_soon` until it is deleted. By the row as it was read:
        nothing is locked.
        """
        if self.frozen_at:
            raise OrganizationFrozen(self.deletion_due_at is not None)

    def require_still_thawed(self) -> None:
        """Read it again, and raise what require_thawed() raises.

        For the transaction that writes, after a wait. Nothing is locked: freeze() ends
        after all transactions that have read that it does not move.
        """
        self.refresh_from_db(fields=["frozen_at", "deletion_due_at"])
        self.require_thawed()

    def lock_row(self) -> None:
        """Lock it until the end of the transaction (SELECT ... FOR NO KEY UPDATE).

        This object is not reloaded. 404 `not_found` if the organization was deleted.
        """
        rows = Tenant.objects.select_for_update(no_key=True)
        if rows.filter(pk=self.pk).first() is None:
            raise NotFound("not_found", "The organization was deleted.")

    @classmethod
    def put_off_deletion(cls, tenant_id: UUID) -> None:
        """Let a deletion wait for this transaction (SELECT ... FOR KEY SHARE).

        Nobody else waits. For what a deletion must find, take this before the row that
        is changed. 404 `not_found` if the organization was deleted.
        """
        table = cls._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT FROM {table} WHERE id = %s AND deleted_at IS NULL "
                "FOR KEY SHARE",
                [tenant_id],
            )
            if not cursor.rowcount:
                raise NotFound("not_found", "The organization was deleted.")


organization_by_id = CompiledQuery(
    lambda pk: Tenant.objects.filter(pk=pk).select_related("network"), UUID
)


class Asset(Record):
    """A picture that is served publicly, under a random name."""

    LIMIT = 1000

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="assets"
    )
    name = models.CharField(max_length=40, unique=True)
    size = models.PositiveIntegerField()

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        return f"{settings.PUBLIC_URL}/assets/{self.name}"

    @staticmethod
    def path_of(address: str) -> str:
        """Return the path of a picture that is stored here.

        Empty for one elsewhere, as pages of ours call no other host.
        """
        start, _, name = address.rpartition("/")
        is_ours = start == f"{settings.PUBLIC_URL}/assets" and PICTURE.fullmatch(name)
        return urlsplit(address).path if is_ours else ""

    @classmethod
    def is_stored(cls, tenant_id: UUID, address: str) -> bool:
        """Whether a picture of the organization's account has this address."""
        _, _, name = cls.path_of(address).rpartition("/")
        of_account = cls.objects.filter(provider__tenants=tenant_id)
        return bool(name) and of_account.filter(name=name).exists()
