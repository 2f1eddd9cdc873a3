from django.contrib.postgres.indexes import HashIndex
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0002_key_demand")]

    operations = [
        migrations.AddIndex(
            model_name="wallet",
            index=HashIndex(
                fields=["wallet_id"],
                name="wallet_by_chosen_id",
            ),
        ),
        migrations.AddIndex(
            model_name="wallet",
            index=HashIndex(
                condition=models.Q(("did", ""), _negated=True),
                fields=["did"],
                name="wallet_by_did",
            ),
        ),
    ]
