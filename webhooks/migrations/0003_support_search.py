from django.db import migrations, models
from django.db.models.functions import Collate, Left


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0002_unanswered_calls")]

    operations = [
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(
                Collate(Left("url", 200), "C"), name="webhook_by_url"
            ),
        ),
    ]
