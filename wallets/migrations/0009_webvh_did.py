from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0008_indexes_of_notes")]

    operations = [
        migrations.AddField(
            model_name="wallet",
            name="webvh_did",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=255
            ),
        ),
    ]
