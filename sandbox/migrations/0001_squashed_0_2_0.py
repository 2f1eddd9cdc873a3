import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

import core.telemetry.logs
from core.database.locks import LockTables


class Migration(migrations.Migration):
    replaces = [("sandbox", "0001_initial")]

    initial = True

    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        LockTables("wallets_wallet", "tenants_tenant"),
        migrations.CreateModel(
            name="SimulatedHolder",
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
                    "behaviour",
                    models.CharField(
                        choices=[
                            ("accept", "Accepts and proves"),
                            ("decline", "Declines"),
                            ("silent", "Never answers"),
                            ("wrongValue", "Shows a value that was not signed"),
                            ("revoked", "Proves with a revoked credential"),
                            ("predicateFails", "Meets no comparison"),
                        ],
                        max_length=14,
                    ),
                ),
                ("delay_seconds", models.PositiveSmallIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "wallet",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="simulated_holder",
                        to="wallets.wallet",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="holders_of_sandbox")
                ],
            },
        ),
        migrations.CreateModel(
            name="SimulatedAnswer",
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
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("credential", "Credential"),
                            ("verification", "Verification"),
                        ],
                        max_length=12,
                    ),
                ),
                ("exchange_id", models.UUIDField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "holder",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="sandbox.simulatedholder",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["tenant", "due_at"],
                        name="simulated_answer_due",
                    )
                ],
            },
        ),
    ]
