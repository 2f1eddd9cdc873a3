from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="credentialdefinition",
            name="claims",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
