import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

import core.telemetry.logs


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
        ("verifications", "0008_openid4vp"),
    ]

    operations = [
        migrations.CreateModel(
            name="WaitingAnswer",
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
                ("verification_id", models.UUIDField(unique=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="waiting_answer_due",
                    )
                ],
            },
        ),
    ]
