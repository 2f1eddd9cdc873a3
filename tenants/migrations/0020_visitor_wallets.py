from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0019_erased_connections"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="visitor_wallets",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
