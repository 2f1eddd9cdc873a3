from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("wallets", "0004_deleted_at")]

    operations = [
        BuildIndex(
            model_name="key",
            index=models.Index(fields=["wallet", "id"], name="keys_of_wallet"),
        ),
    ]
