from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0008_indexes_of_notes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="wallet",
            name="did",
            field=models.CharField(blank=True, max_length=255),
        ),
    ]
