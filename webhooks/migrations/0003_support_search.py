from django.db import migrations, models
from django.db.models.functions import Collate, Left

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("webhooks", "0002_unanswered_calls")]

    operations = [
        BuildIndex(
            model_name="webhook",
            index=models.Index(
                Collate(Left("url", 200), "C"), name="webhook_by_url"
            ),
        ),
    ]
