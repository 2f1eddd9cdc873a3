from django.db import migrations, models
from django.db.models.functions import Cast

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("webhooks", "0008_bulk_finished")]

    operations = [
        BuildIndex(
            model_name="delivery",
            index=models.Index(
                "object_key",
                Cast("webhook", models.TextField()),
                "sequence",
                condition=models.Q(status="pending"),
                name="deliveries_of_object",
            ),
        ),
    ]
