from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="short_qr_codes",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
