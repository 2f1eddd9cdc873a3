import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

import core.telemetry.logs


class Migration(migrations.Migration):
    replaces = [
        ("credentials", "0001_initial"),
        ("credentials", "0002_definition_claims"),
        ("credentials", "0003_open_credentials"),
        ("credentials", "0004_support_search"),
        ("credentials", "0005_reason"),
        ("credentials", "0006_final_status_lists"),
        ("credentials", "0007_did_endpoint"),
        ("credentials", "0008_caused_by_request"),
        ("credentials", "0009_publication_idempotency_key"),
        ("credentials", "0010_bulk"),
        ("credentials", "0011_bulk_sequence"),
        ("credentials", "0012_unpublished_revocations"),
        ("credentials", "0013_notes"),
        ("credentials", "0014_indexes_of_notes"),
        ("credentials", "0015_notes_of_bulk_rows"),
        ("credentials", "0016_credential_format"),
    ]

    initial = True

    dependencies = [
        ("connections", "0001_squashed_0_2_0"),
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schema",
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
                ("schema_id", models.CharField(max_length=300)),
                ("name", models.CharField(max_length=64)),
                ("version", models.CharField(max_length=64)),
                (
                    "attribute_names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=256), size=None
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "schema_id"), name="one_schema_per_id"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CredentialDefinition",
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
                ("definition_id", models.CharField(max_length=300)),
                ("tag", models.CharField(max_length=64)),
                ("supports_revocation", models.BooleanField(default=False)),
                ("private_key", models.BinaryField()),
                ("key_proof", models.BinaryField()),
                ("deleted_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "schema",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        to="credentials.schema",
                    ),
                ),
                ("claims", models.JSONField(db_default={}, default=dict)),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "reference", "id"],
                        name="definition_by_reference",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "definition_id"), name="one_definition_per_id"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StatusList",
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
                ("registry_id", models.CharField(max_length=500)),
                ("timestamp", models.BigIntegerField()),
                ("body", models.JSONField()),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="tenants.network",
                    ),
                ),
                ("is_final", models.BooleanField(db_default=True, default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("network", "registry_id", "timestamp"),
                        name="one_list_per_second",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Credential",
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
                ("sequence", models.PositiveIntegerField(default=0, editable=False)),
                ("thread_id", models.CharField(max_length=128)),
                ("wire_version", models.CharField(default="1.0", max_length=3)),
                ("wire_format", models.CharField(default="hlindy", max_length=9)),
                ("proposal", models.BinaryField(null=True)),
                (
                    "role",
                    models.CharField(
                        choices=[("issuer", "Issuer"), ("holder", "Holder")],
                        max_length=6,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("Proposed", "Proposed"),
                            ("Offered", "Offered"),
                            ("Requested", "Requested"),
                            ("Issued", "Issued"),
                            ("Rejected", "Rejected"),
                            ("Revoked", "Revoked"),
                        ],
                        default="Offered",
                        max_length=9,
                    ),
                ),
                ("schema_id", models.CharField(blank=True, max_length=300)),
                ("definition_id", models.CharField(blank=True, max_length=300)),
                (
                    "attribute_names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=256), size=None
                    ),
                ),
                ("automatic_issuance", models.BooleanField(default=False)),
                ("values", models.BinaryField(null=True)),
                ("offer_body", models.BinaryField(null=True)),
                ("request_body", models.BinaryField(null=True)),
                ("request_metadata", models.BinaryField(null=True)),
                ("credential", models.BinaryField(null=True)),
                ("accepted_at", models.DateTimeField(null=True)),
                ("issued_at", models.DateTimeField(null=True)),
                (
                    "revocation_registry_id",
                    models.CharField(blank=True, max_length=500),
                ),
                ("revocation_index", models.PositiveIntegerField(null=True)),
                ("revocation_published_at", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, max_length=100)),
                (
                    "connection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="connections.connection",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "wallet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="wallets.wallet",
                    ),
                ),
                ("reason", models.BinaryField(null=True)),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
                ("moved_at", models.DateTimeField(editable=False, null=True)),
                (
                    "format",
                    models.CharField(
                        choices=[("anoncreds", "Anoncreds"), ("dc+sd-jwt", "Sd Jwt")],
                        db_default="anoncreds",
                        default="anoncreds",
                        max_length=9,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["wallet", "-id"], name="credentials_wallet__6c603e_idx"
                    ),
                    models.Index(
                        fields=["wallet", "state", "id"],
                        name="credentials_wallet__d8d68f_idx",
                    ),
                    models.Index(
                        fields=["wallet", "updated_at", "id"],
                        name="credentials_wallet__e34fb7_idx",
                    ),
                    models.Index(
                        fields=["wallet", "definition_id", "id"],
                        name="credentials_wallet__e0a102_idx",
                    ),
                    models.Index(
                        fields=["wallet", "schema_id", "id"],
                        name="credentials_wallet__09c7e4_idx",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["Proposed", "Offered", "Requested"])
                        ),
                        fields=["tenant"],
                        name="credential_open",
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        fields=["thread_id"], name="credential_by_thread"
                    ),
                    models.Index(
                        condition=models.Q(
                            ("revocation_published_at", None),
                            ("role", "issuer"),
                            ("state", "Revoked"),
                        ),
                        fields=["updated_at"],
                        name="credential_unpublished",
                    ),
                    models.Index(
                        fields=["wallet", "reference", "id"],
                        name="credential_by_reference",
                    ),
                    models.Index(
                        condition=models.Q(("moved_at__isnull", False)),
                        fields=["wallet", "moved_at"],
                        name="credential_moved",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "thread_id", "role"),
                        name="one_credential_per_thread",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("revocation_index__isnull", False), ("role", "issuer")
                        ),
                        fields=("revocation_registry_id", "revocation_index"),
                        name="one_credential_per_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("revocation_index", None),
                                ("revocation_registry_id", ""),
                            ),
                            models.Q(
                                ("revocation_index__isnull", False),
                                models.Q(("revocation_registry_id", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="place_is_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "Revoked"), _negated=True),
                            ("revocation_index__isnull", False),
                            _connector="OR",
                        ),
                        name="revoked_had_a_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("issued_at__isnull", False),
                                ("state__in", ["Issued", "Revoked"]),
                            ),
                            models.Q(
                                models.Q(
                                    ("state__in", ["Issued", "Revoked"]), _negated=True
                                ),
                                ("issued_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="issued_has_its_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["Proposed", "Offered", "Rejected"]),
                            ("accepted_at__isnull", False),
                            _connector="OR",
                        ),
                        name="past_offered_has_its_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "Proposed"), _negated=True),
                            ("proposal__isnull", False),
                            _connector="OR",
                        ),
                        name="proposed_has_its_proposal",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["Proposed", "Rejected"]),
                            ("offer_body__isnull", False),
                            _connector="OR",
                        ),
                        name="past_proposed_has_its_offer",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("role", "holder"), ("state", "Issued"), _negated=True
                            ),
                            ("credential__isnull", False),
                            _connector="OR",
                        ),
                        name="holder_has_what_was_issued",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Publication",
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
                            ("did", "Did"),
                            ("endpoint", "Endpoint"),
                            ("schema", "Schema"),
                            ("definition", "Definition"),
                            ("registry", "Registry"),
                        ],
                        max_length=12,
                    ),
                ),
                ("subject", models.CharField(max_length=600)),
                ("object_id", models.CharField(blank=True, max_length=600)),
                ("wanted", models.CharField(max_length=64)),
                ("attended_until", models.DateTimeField(null=True)),
                ("material", models.BinaryField(null=True)),
                (
                    "definition",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="credentials.credentialdefinition",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default=core.telemetry.logs.current_request_id,
                        max_length=64,
                    ),
                ),
                (
                    "idempotency_key",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=255
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="publication_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status", "exhausted"), _negated=True),
                        fields=("kind", "subject"),
                        name="one_publication_of_each",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "pending"), ("material", None), _connector="XOR"
                        ),
                        name="publication_is_wiped_at_its_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PublishedObject",
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
                            ("did", "Did"),
                            ("schema", "Schema"),
                            ("definition", "Definition"),
                            ("registry", "Registry"),
                        ],
                        max_length=12,
                    ),
                ),
                ("object_id", models.CharField(max_length=500)),
                ("sequence", models.BigIntegerField()),
                ("body", models.JSONField()),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="tenants.network",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("network", "object_id"), name="one_object_per_id"
                    ),
                    models.UniqueConstraint(
                        fields=("network", "sequence"), name="one_object_per_write"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RevocationRegistry",
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
                ("registry_id", models.CharField(max_length=500, unique=True)),
                ("size", models.PositiveIntegerField()),
                ("next_index", models.PositiveIntegerField(default=1)),
                ("private_key", models.BinaryField()),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="registries",
                        to="credentials.credentialdefinition",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "revocation registries",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("next_index__gte", 1),
                            ("next_index__lte", models.F("size")),
                        ),
                        name="places_are_inside_the_registry",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DidEndpoint",
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
                ("did", models.CharField(max_length=22)),
                ("endpoint", models.CharField(max_length=2000)),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="tenants.network",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("network", "did"), name="one_endpoint_per_did"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Bulk",
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
                    "request_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default=core.telemetry.logs.current_request_id,
                        max_length=64,
                    ),
                ),
                ("automatic_issuance", models.BooleanField(default=False)),
                ("row_count", models.PositiveIntegerField(default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="credentials.credentialdefinition",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "sequence",
                    models.PositiveIntegerField(
                        db_default=0, default=0, editable=False
                    ),
                ),
            ],
            options={
                "verbose_name": "bulk",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="bulk_due",
                    ),
                    models.Index(fields=["tenant", "-id"], name="bulks_of_tenant"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", False), ("status", "done")
                            ),
                            models.Q(
                                models.Q(("status", "done"), _negated=True),
                                ("finished_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="done_bulk_has_its_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("paused_at", None), ("status", "pending"), _connector="OR"
                        ),
                        name="paused_bulk_is_not_done",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkRow",
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
                ("number", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Waiting", "Waiting"),
                            ("Offered", "Offered"),
                            ("Failed", "Failed"),
                        ],
                        default="Waiting",
                        max_length=7,
                    ),
                ),
                ("connection_id", models.CharField(blank=True, max_length=128)),
                ("wallet_id", models.CharField(blank=True, max_length=128)),
                ("values", models.BinaryField(null=True)),
                ("errors", models.JSONField(default=list)),
                (
                    "bulk",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="credentials.bulk",
                    ),
                ),
                (
                    "credential",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="credentials.credential",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["bulk", "status", "number"], name="bulk_rows_by_status"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("bulk", "number"), name="one_bulk_row_per_number"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "Waiting"), _negated=True),
                            ("values__isnull", False),
                            _connector="OR",
                        ),
                        name="waiting_bulk_row_has_values",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "Offered"), _negated=True),
                            ("values", None),
                            _connector="OR",
                        ),
                        name="offered_bulk_row_is_wiped",
                    ),
                ],
            },
        ),
    ]
