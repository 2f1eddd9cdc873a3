from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0017_moving"),
    ]

    operations = [
        migrations.AlterField(
            model_name="erasure",
            name="kind",
            field=models.CharField(
                choices=[
                    ("organization", "Organization"),
                    ("wallet", "Wallet"),
                    ("import", "Import"),
                ],
                max_length=12,
            ),
        ),
    ]
