import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("holderpages", "0001_initial")]

    initial = True

    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClosedLink",
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
                ("token", models.CharField(max_length=32, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("invitation", "Invitation"),
                            ("offer", "Offer"),
                            ("request", "Request"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[("withdrawn", "Withdrawn"), ("used", "Used")],
                        max_length=9,
                    ),
                ),
                ("moved_to", models.UUIDField(null=True)),
                ("thread_id", models.CharField(blank=True, max_length=128)),
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
                        fields=["created_at"], name="holderpages_created_7359b4_idx"
                    )
                ],
            },
        ),
    ]
