from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0027_scopes_of_keys")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="strict",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
