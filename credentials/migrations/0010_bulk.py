import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

import core.telemetry.logs
from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0009_publication_idempotency_key"),
        ("tenants", "0017_moving"),
    ]

    operations = [
        LockTables(
            "credentials_credential",
            "tenants_tenant",
            "credentials_credentialdefinition",
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
            ],
            options={
                "verbose_name": "bulk",
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
            ],
        ),
        migrations.AddIndex(
            model_name="bulk",
            index=models.Index(
                condition=models.Q(("status", "pending")),
                fields=["due_at"],
                name="bulk_due",
            ),
        ),
        migrations.AddIndex(
            model_name="bulk",
            index=models.Index(fields=["tenant", "-id"], name="bulks_of_tenant"),
        ),
        migrations.AddConstraint(
            model_name="bulk",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at__isnull", False), ("status", "done")),
                    models.Q(
                        models.Q(("status", "done"), _negated=True),
                        ("finished_at", None),
                    ),
                    _connector="OR",
                ),
                name="done_bulk_has_its_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulk",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("paused_at", None), ("status", "pending"), _connector="OR"
                ),
                name="paused_bulk_is_not_done",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkrow",
            index=models.Index(
                fields=["bulk", "status", "number"], name="bulk_rows_by_status"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkrow",
            constraint=models.UniqueConstraint(
                fields=("bulk", "number"), name="one_bulk_row_per_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkrow",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "Waiting"), _negated=True),
                    ("values__isnull", False),
                    _connector="OR",
                ),
                name="waiting_bulk_row_has_values",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkrow",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "Offered"), _negated=True),
                    ("values", None),
                    _connector="OR",
                ),
                name="offered_bulk_row_is_wiped",
            ),
        ),
    ]
