from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0023_is_test"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="last_used_address",
            field=models.CharField(db_default="", default="", max_length=45),
        ),
    ]
