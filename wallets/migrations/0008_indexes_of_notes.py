from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("wallets", "0007_notes")]

    operations = [
        BuildIndex(
            model_name="wallet",
            index=models.Index(
                fields=["tenant", "reference", "id"],
                name="wallet_by_reference",
            ),
        ),
    ]
