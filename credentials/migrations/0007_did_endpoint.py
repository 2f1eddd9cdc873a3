import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0006_final_status_lists"),
        ("tenants", "0008_second_factor"),
    ]

    operations = [
        migrations.AlterField(
            model_name="publication",
            name="kind",
            field=models.CharField(
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
                ]
            },
        ),
    ]
