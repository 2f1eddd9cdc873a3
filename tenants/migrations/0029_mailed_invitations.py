from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0028_strict_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="invitation",
            name="is_mailed",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
