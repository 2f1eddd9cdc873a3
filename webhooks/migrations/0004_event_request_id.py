from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0003_support_search")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="request_id",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=64
            ),
        ),
    ]
