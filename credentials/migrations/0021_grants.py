import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0020_definition_formats"),
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        LockTables("credentials_credential", "tenants_tenant"),
        migrations.CreateModel(
            name="SpentNonce",
            fields=[
                (
                    "digest",
                    models.CharField(max_length=43, primary_key=True, serialize=False),
                ),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Grant",
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
                ("code_digest", models.BinaryField(unique=True)),
                ("transaction_code", models.BinaryField(null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("redeemed_at", models.DateTimeField(null=True)),
                ("token_digest", models.BinaryField(null=True, unique=True)),
                ("token_expires_at", models.DateTimeField(null=True)),
                ("token_thumbprint", models.CharField(blank=True, max_length=43)),
                ("key_thumbprint", models.CharField(blank=True, max_length=43)),
                ("served_at", models.DateTimeField(null=True)),
                ("notified", models.CharField(blank=True, max_length=30)),
                (
                    "credential",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grant",
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
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("redeemed_at", None), ("token_digest", None)),
                            models.Q(
                                ("redeemed_at__isnull", False),
                                ("token_digest__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="redeemed_has_its_token",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenStatusList",
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
                ("bits", models.BinaryField()),
                ("used", models.PositiveIntegerField(default=0)),
                ("version", models.PositiveIntegerField(default=0)),
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
                        fields=("tenant", "number"), name="one_status_list_per_number"
                    )
                ],
            },
        ),
    ]
