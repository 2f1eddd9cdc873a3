import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

from core.database.cascades import cascade
from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0032_filled_checks"),
        ("tenants", "0034_name_search"),
        ("verifications", "0010_no_card"),
    ]

    operations = [
        LockTables("verifications_verification", "tenants_tenant"),
        migrations.CreateModel(
            name="CheckDigests",
            fields=[
                (
                    "digests",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "verification",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="name_digests",
                        serialize=False,
                        to="verifications.verification",
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
                        name="check_by_name_digest",
                    )
                ],
            },
        ),
        cascade("verifications_checkdigests", "tenant_id", "tenants_tenant"),
        cascade(
            "verifications_checkdigests",
            "verification_id",
            "verifications_verification",
        ),
    ]
