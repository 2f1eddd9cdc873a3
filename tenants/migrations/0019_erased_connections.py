from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0018_import_erasure")]

    operations = [
        migrations.AlterField(
            model_name="erasure",
            name="kind",
            field=models.CharField(
                choices=[
                    ("organization", "Organization"),
                    ("wallet", "Wallet"),
                    ("connection", "Connection"),
                    ("import", "Import"),
                ],
                max_length=12,
            ),
        ),
    ]
