from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0031_mailings")]

    operations = [
        migrations.AddField(
            model_name="namekey",
            name="checks_filled_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="namekey",
            name="checks_filled_to",
            field=models.UUIDField(null=True),
        ),
    ]
