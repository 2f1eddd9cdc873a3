from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0013_erasure"),
        ("wallets", "0003_support_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="wallet",
            name="deleted_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
