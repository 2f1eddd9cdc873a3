from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0006_one_kind_of_spare_key")]

    operations = [
        migrations.AddField(
            model_name="wallet",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="wallet",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
    ]
