import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

# Retention sets agency.audit_retention for its own transaction (tenants/audit.py).
REFUSE = """
CREATE FUNCTION agency_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('agency.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rows of the audit log are never changed or deleted';
END
$$;
CREATE TRIGGER audit_entries_never_change BEFORE UPDATE OR DELETE
ON tenants_auditentry FOR EACH ROW EXECUTE FUNCTION agency_refuse_audit_change();
"""
ALLOW = """
DROP TRIGGER audit_entries_never_change ON tenants_auditentry;
DROP FUNCTION agency_refuse_audit_change();
"""


class Migration(migrations.Migration):
    replaces = [
        ("tenants", "0001_initial"),
        ("tenants", "0002_short_qr_codes"),
        ("tenants", "0003_quotas"),
        ("tenants", "0004_holder_pages"),
        ("tenants", "0005_audit_log"),
        ("tenants", "0006_members"),
        ("tenants", "0007_support_search"),
        ("tenants", "0008_second_factor"),
        ("tenants", "0009_invalid_proof_answer"),
        ("tenants", "0010_daily_usage"),
        ("tenants", "0011_own_wallet_api"),
        ("tenants", "0012_sha256_of_api_keys"),
        ("tenants", "0013_erasure"),
        ("tenants", "0014_kept_days"),
        ("tenants", "0015_key_of_keyed_digests"),
        ("tenants", "0016_generations_of_data_keys"),
        ("tenants", "0017_moving"),
        ("tenants", "0018_import_erasure"),
        ("tenants", "0019_erased_connections"),
        ("tenants", "0020_visitor_wallets"),
        ("tenants", "0021_daily_statistics"),
        ("tenants", "0022_logged_request"),
        ("tenants", "0023_is_test"),
        ("tenants", "0024_last_used_address"),
        ("tenants", "0025_visitor_wallets_a_day"),
        ("tenants", "0026_deleted_soon"),
        ("tenants", "0027_scopes_of_keys"),
        ("tenants", "0028_strict_keys"),
        ("tenants", "0029_mailed_invitations"),
        ("tenants", "0030_invitation_protocol"),
        ("tenants", "0031_idempotency_leases"),
        ("tenants", "0032_webvh_networks"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Provider",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "has_quotas",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text=(
                            "Whether the account and its organizations have the limits of "
                            "QUOTA_…."
                        ),
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Network",
            fields=[
                ("id", models.SlugField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("local", "Local"),
                            ("indy", "Indy"),
                            ("webvh", "Webvh"),
                        ],
                        max_length=16,
                    ),
                ),
                ("sequence", models.BigIntegerField(default=0)),
                ("genesis", models.TextField(blank=True)),
                ("endorser_did", models.CharField(blank=True, max_length=22)),
                ("endorser_seed", models.BinaryField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("endorser_did", ""), ("endorser_seed", None)),
                            models.Q(
                                models.Q(("endorser_did", ""), _negated=True),
                                ("endorser_seed__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="endorser_is_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind", "indy"),
                                models.Q(("genesis", ""), _negated=True),
                            ),
                            models.Q(
                                ("endorser_did", ""),
                                ("genesis", ""),
                                ("kind__in", ["local", "webvh"]),
                            ),
                            _connector="OR",
                        ),
                        name="indy_networks_have_a_genesis",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "public_id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, unique=True
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("image_url", models.URLField(blank=True, max_length=2000)),
                ("made_by_provider", models.BooleanField(default=False)),
                ("region", models.CharField(blank=True, max_length=100)),
                (
                    "endorser",
                    models.CharField(
                        choices=[
                            ("Shared", "Shared"),
                            ("Dedicated", "Dedicated"),
                            ("Delegated", "Delegated"),
                        ],
                        default="Shared",
                        max_length=9,
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="tenants.network",
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tenants",
                        to="tenants.provider",
                    ),
                ),
                (
                    "short_qr_codes",
                    models.BooleanField(db_default=False, default=False),
                ),
                (
                    "primary_color",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=7
                    ),
                ),
                (
                    "secondary_color",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=7
                    ),
                ),
                (
                    "default_language",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=8
                    ),
                ),
                ("wallet_apps", models.JSONField(null=True)),
                ("return_urls", models.JSONField(null=True)),
                (
                    "requires_second_factor",
                    models.BooleanField(db_default=False, default=False),
                ),
                (
                    "invalid_proof_answer",
                    models.CharField(
                        choices=[
                            ("problem-report", "A problem report"),
                            ("ack", "An ack that says false"),
                        ],
                        db_default="problem-report",
                        default="problem-report",
                        max_length=14,
                    ),
                ),
                (
                    "own_wallet_api",
                    models.BooleanField(db_default=False, default=False),
                ),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "values_kept_days",
                    models.PositiveSmallIntegerField(blank=True, null=True),
                ),
                (
                    "exchanges_kept_days",
                    models.PositiveSmallIntegerField(blank=True, null=True),
                ),
                ("frozen_at", models.DateTimeField(editable=False, null=True)),
                ("imported_at", models.DateTimeField(editable=False, null=True)),
                (
                    "visitor_wallets",
                    models.BooleanField(db_default=False, default=False),
                ),
                ("is_test", models.BooleanField(db_default=False, default=False)),
                (
                    "visitor_wallets_a_day",
                    models.PositiveIntegerField(
                        db_default=500,
                        default=500,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                    ),
                ),
                ("deletion_due_at", models.DateTimeField(editable=False, null=True)),
                ("notice_due_at", models.DateTimeField(editable=False, null=True)),
                (
                    "invitation_protocol",
                    models.CharField(
                        choices=[
                            (
                                "connections/1.0",
                                "Connections 1.0, which older wallets read",
                            ),
                            ("out-of-band", "Out-of-band, which newer wallets read"),
                            ("both", "Both: a wallet takes the one that it reads"),
                        ],
                        db_default="connections/1.0",
                        default="connections/1.0",
                        max_length=15,
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(
                        django.db.models.functions.comparison.Collate(
                            django.db.models.functions.text.Lower("name"), "C"
                        ),
                        name="tenant_by_name",
                    ),
                    models.Index(
                        condition=models.Q(("deletion_due_at__isnull", False)),
                        fields=["deletion_due_at"],
                        name="tenant_deleted_soon",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("deletion_due_at", None),
                            ("frozen_at__isnull", False),
                            _connector="OR",
                        ),
                        name="tenant_deleted_soon_is_frozen",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("operator", "Operator"),
                            ("developer", "Developer"),
                            ("viewer", "Viewer"),
                        ],
                        default="owner",
                        max_length=16,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "user"), name="one_membership"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="tenant",
            name="people",
            field=models.ManyToManyField(
                through="tenants.Membership", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.CreateModel(
            name="Asset",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("name", models.CharField(max_length=40, unique=True)),
                ("size", models.PositiveIntegerField()),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="assets",
                        to="tenants.provider",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("operation", models.CharField(max_length=200)),
                ("fingerprint", models.BinaryField()),
                ("object_model", models.CharField(blank=True, max_length=100)),
                ("object_id", models.CharField(blank=True, max_length=100)),
                ("shown_once", models.BooleanField(default=False)),
                ("answer", models.BinaryField(null=True)),
                (
                    "provider",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.provider",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["created_at"], name="tenants_ide_created_183965_idx"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "key"), name="one_write_per_tenant_key"
                    ),
                    models.UniqueConstraint(
                        fields=("provider", "key"), name="one_write_per_provider_key"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tenant", None), ("provider", None), _connector="XOR"
                        ),
                        name="idempotency_key_has_one_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("shown_once", False), ("answer", None), _connector="OR"
                        ),
                        name="secrets_are_not_kept",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DataKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("master_key_id", models.CharField(max_length=16)),
                ("wrapped", models.BinaryField()),
                (
                    "tenant",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
                ("digest_key", models.BinaryField(null=True)),
                (
                    "generation",
                    models.PositiveSmallIntegerField(db_default=1, default=1),
                ),
                ("rotated_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1),
                        condition=models.Q(("tenant", None)),
                        name="one_system_data_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("access_token", "Access token"),
                            ("subscription_key", "Subscription key"),
                            ("provider_key", "Provider key"),
                        ],
                        max_length=16,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("digest", models.BinaryField(unique=True)),
                ("sealed", models.BinaryField(null=True)),
                ("hint", models.CharField(max_length=16)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "provider",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keys",
                        to="tenants.provider",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keys",
                        to="tenants.tenant",
                    ),
                ),
                ("sha256", models.BinaryField(null=True, unique=True)),
                (
                    "last_used_address",
                    models.CharField(db_default="", default="", max_length=45),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), null=True, size=None
                    ),
                ),
                ("values_read_on", models.JSONField(db_default={}, default=dict)),
                ("strict", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name": "API key",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind", "provider_key"),
                                ("provider__isnull", False),
                                ("tenant", None),
                            ),
                            models.Q(
                                models.Q(("kind", "provider_key"), _negated=True),
                                ("provider", None),
                                ("tenant__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="key_has_one_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scopes", None), ("kind", "access_token"), _connector="OR"
                        ),
                        name="only_tokens_have_scopes",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AgreementAcceptance",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("version", models.CharField(max_length=256)),
                ("digest", models.CharField(max_length=64)),
                ("mechanism", models.CharField(max_length=256)),
                ("accepted_at", models.DateTimeField()),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.network",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("network", "tenant"),
                        name="one_acceptance_each",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("person", "Person"),
                            ("staff", "Staff, in the admin"),
                            ("key", "API key"),
                            ("command", "Command"),
                            ("system", "Agency itself"),
                        ],
                        db_default="system",
                        max_length=8,
                        verbose_name="who",
                    ),
                ),
                ("actor_id", models.CharField(blank=True, max_length=64)),
                (
                    "actor_name",
                    models.CharField(blank=True, max_length=254, verbose_name="name"),
                ),
                ("object_type", models.CharField(max_length=40)),
                ("object_id", models.CharField(max_length=64)),
                (
                    "origin",
                    models.CharField(blank=True, max_length=64, verbose_name="from"),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("details", models.JSONField(default=dict)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.tenant",
                        verbose_name="organization",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit log",
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="audit_of_tenant"),
                    models.Index(
                        fields=["tenant", "action", "id"], name="audit_by_action"
                    ),
                    models.Index(
                        fields=["tenant", "actor_name", "id"], name="audit_by_actor"
                    ),
                    models.Index(fields=["object_id"], name="audit_by_object"),
                    models.Index(fields=["created_at"], name="audit_by_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "email",
                    models.EmailField(help_text="In lower case.", max_length=254),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("operator", "Operator"),
                            ("developer", "Developer"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                ("digest", models.BinaryField(unique=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="tenants.tenant",
                    ),
                ),
                ("is_mailed", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "email"), name="one_invitation_each"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField()),
                ("connections", models.PositiveIntegerField(default=0)),
                ("credentials", models.PositiveIntegerField(default=0)),
                ("verifications", models.PositiveIntegerField(default=0)),
                ("webhook_calls", models.PositiveIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
                ("offers", models.PositiveIntegerField(db_default=0, default=0)),
                ("valid_proofs", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "invalid_proofs",
                    models.PositiveIntegerField(db_default=0, default=0),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="usage_by_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "day"),
                        name="one_usage_per_organization_and_day",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("done", "Done"),
                            ("exhausted", "Exhausted"),
                            ("unconfirmed", "Unconfirmed"),
                        ],
                        default="pending",
                        max_length=11,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lease_until", models.DateTimeField(null=True)),
                ("lease_owner", models.UUIDField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("organization", "Organization"),
                            ("wallet", "Wallet"),
                            ("connection", "Connection"),
                            ("import", "Import"),
                        ],
                        max_length=12,
                    ),
                ),
                ("object_key", models.UUIDField(unique=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="erasure_due",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FormerDataKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("generation", models.PositiveSmallIntegerField()),
                ("master_key_id", models.CharField(max_length=16)),
                ("wrapped", models.BinaryField()),
                ("retired_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="former_data_keys",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "generation"),
                        name="one_data_key_per_generation",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("tenant", None)),
                        fields=("generation",),
                        name="one_system_data_key_per_generation",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LoggedRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("method", models.CharField(max_length=10)),
                ("route", models.CharField(max_length=200)),
                ("status", models.PositiveSmallIntegerField()),
                ("error_code", models.CharField(blank=True, max_length=64)),
                ("milliseconds", models.PositiveIntegerField()),
                ("request_id", models.CharField(max_length=64)),
                ("address", models.CharField(blank=True, max_length=64)),
                (
                    "key",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.apikey",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                        verbose_name="organization",
                    ),
                ),
            ],
            options={
                "verbose_name": "API call",
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="requests_in_time"),
                    models.Index(fields=["request_id"], name="requests_by_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyLease",
            fields=[
                (
                    "id",
                    models.UUIDField(editable=False, primary_key=True, serialize=False),
                ),
                ("holder", models.UUIDField()),
                ("leased_until", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(REFUSE, ALLOW),
    ]
