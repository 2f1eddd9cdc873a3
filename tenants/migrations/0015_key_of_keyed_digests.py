from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0014_kept_days"),
    ]

    operations = [
        migrations.AddField(
            model_name="datakey",
            name="digest_key",
            field=models.BinaryField(null=True),
        ),
    ]
