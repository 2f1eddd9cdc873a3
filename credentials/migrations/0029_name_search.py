import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from uuid_utils.compat import uuid7

from core.database.cascades import cascade
from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0034_name_search"),
        ("credentials", "0028_last_documents"),
    ]

    operations = [
        LockTables("credentials_credential", "tenants_tenant"),
        migrations.CreateModel(
            name="NameKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid7,
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
                ("key", models.BinaryField()),
                ("filled_to", models.UUIDField(null=True)),
                ("filled_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="name_key",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="NameDigests",
            fields=[
                (
                    "credential",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="name_digests",
                        serialize=False,
                        to="credentials.credential",
                    ),
                ),
                (
                    "digests",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False,
                        fields=["digests"],
                        name="credential_by_name_digest",
                    )
                ],
            },
        ),
        cascade("credentials_namekey", "tenant_id", "tenants_tenant"),
        cascade("credentials_namedigests", "tenant_id", "tenants_tenant"),
        cascade("credentials_namedigests", "credential_id", "credentials_credential"),
    ]
