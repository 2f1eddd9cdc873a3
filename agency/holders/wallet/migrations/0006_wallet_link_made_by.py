from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("webwallet", "0005_known_browsers")]

    operations = [
        BuildIndex(
            model_name="personallink",
            index=models.Index(
                condition=models.Q(("made_by_connection__isnull", False)),
                fields=["made_by_connection"],
                name="wallet_link_made_by",
            ),
        ),
    ]
