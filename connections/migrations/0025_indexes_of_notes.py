from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("connections", "0024_notes")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                fields=["wallet", "reference", "id"],
                name="connection_by_reference",
            ),
        ),
    ]
