from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0026_turns_of_requests")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="wallet_link",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=2000
            ),
        ),
    ]
