import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Authority",
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
                ("is_live", models.BooleanField(default=True)),
                ("private_key", models.BinaryField()),
                ("certificate", models.TextField()),
            ],
            options={
                "verbose_name_plural": "authorities",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_live", True)),
                        fields=("is_live",),
                        name="one_live_authority",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SigningKey",
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
                    "purpose",
                    models.CharField(
                        choices=[
                            ("credentials", "Credentials"),
                            ("requests", "Requests"),
                        ],
                        max_length=11,
                    ),
                ),
                ("private_key", models.BinaryField()),
                ("thumbprint", models.CharField(max_length=43)),
                ("x5c", models.JSONField(default=list)),
                ("ends_at", models.DateTimeField(null=True)),
                ("is_uploaded", models.BooleanField(default=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["ends_at"], name="signing_key_by_end")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "purpose"), name="one_signing_key_per_purpose"
                    )
                ],
            },
        ),
    ]
