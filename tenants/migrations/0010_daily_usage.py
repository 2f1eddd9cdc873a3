import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0009_invalid_proof_answer"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField()),
                ("connections", models.PositiveIntegerField(default=0)),
                ("credentials", models.PositiveIntegerField(default=0)),
                ("verifications", models.PositiveIntegerField(default=0)),
                ("webhook_calls", models.PositiveIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="usage_by_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "day"),
                        name="one_usage_per_organization_and_day",
                    )
                ],
            },
        ),
    ]
