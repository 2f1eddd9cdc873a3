import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0015_key_of_keyed_digests"),
    ]

    operations = [
        LockTables("tenants_tenant", "tenants_datakey"),
        migrations.AddField(
            model_name="datakey",
            name="generation",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="datakey",
            name="rotated_at",
            field=models.DateTimeField(null=True),
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
    ]
