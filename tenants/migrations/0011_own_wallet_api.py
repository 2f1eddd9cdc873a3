from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0010_daily_usage"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="own_wallet_api",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
