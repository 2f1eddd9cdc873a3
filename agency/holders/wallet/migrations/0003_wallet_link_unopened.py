from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("webwallet", "0002_made_by_visitor")]

    operations = [
        BuildIndex(
            model_name="personallink",
            index=models.Index(
                condition=models.Q(("made_by_visitor", True), ("pin", "")),
                fields=["created_at"],
                name="wallet_link_unopened",
            ),
        ),
    ]
