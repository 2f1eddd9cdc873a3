from django.contrib.postgres.indexes import HashIndex
from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("wallets", "0002_key_demand")]

    operations = [
        BuildIndex(
            model_name="wallet",
            index=HashIndex(
                fields=["wallet_id"],
                name="wallet_by_chosen_id",
            ),
        ),
        BuildIndex(
            model_name="wallet",
            index=HashIndex(
                condition=models.Q(("did", ""), _negated=True),
                fields=["did"],
                name="wallet_by_did",
            ),
        ),
    ]
