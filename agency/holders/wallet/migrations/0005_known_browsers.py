from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webwallet", "0004_told_at")]

    operations = [
        migrations.AddField(
            model_name="pintry",
            name="browser",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="pintry",
            name="is_forgiven",
            field=models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddField(
            model_name="personallink",
            name="made_by_connection",
            field=models.UUIDField(null=True),
        ),
    ]
