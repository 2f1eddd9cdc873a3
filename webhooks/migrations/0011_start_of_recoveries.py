from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0010_maker_of_webhooks")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="recovery_started_at",
            field=models.DateTimeField(null=True),
        )
    ]
