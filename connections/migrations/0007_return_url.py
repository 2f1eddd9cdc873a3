from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0006_opened_at")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="return_url",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=2000
            ),
        ),
    ]
