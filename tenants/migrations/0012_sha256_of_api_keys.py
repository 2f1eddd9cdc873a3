from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0011_own_wallet_api"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="sha256",
            field=models.BinaryField(null=True, unique=True),
        ),
    ]
