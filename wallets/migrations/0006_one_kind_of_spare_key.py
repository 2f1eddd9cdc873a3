import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lease spare keys, queue the calls for them, and forget the demand by size.

    No release knows the demand: its table is newer than 0.1.0.
    """

    dependencies = [("wallets", "0005_keys_of_wallet")]

    operations = [
        migrations.AddField(
            model_name="sparekey",
            name="leased_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="KeyRequest",
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
                ("organization", models.UUIDField()),
                ("is_waiting", models.BooleanField(default=True)),
                ("alive_until", models.DateTimeField()),
                ("served_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="KeyFiller",
            fields=[
                (
                    "host",
                    models.CharField(max_length=255, primary_key=True, serialize=False),
                ),
                ("leased_until", models.DateTimeField()),
            ],
        ),
        migrations.DeleteModel(name="KeyDemand"),
    ]
