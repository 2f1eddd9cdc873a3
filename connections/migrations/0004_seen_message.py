import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0003_answering_endpoint"),
        ("wallets", "0002_key_demand"),
    ]

    operations = [
        migrations.CreateModel(
            name="SeenMessage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "key_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.BinaryField(max_length=16)),
                (
                    "key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="wallets.key",
                    ),
                ),
            ],
        ),
    ]
