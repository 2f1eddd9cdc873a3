from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0007_return_url")]

    operations = [
        migrations.AddField(
            model_name="inboundmessage",
            name="thread_id",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=128
            ),
        ),
    ]
