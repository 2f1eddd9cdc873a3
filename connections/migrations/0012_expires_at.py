from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0011_confirmed_requests")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="expires_at",
            field=models.DateTimeField(null=True),
        ),
    ]
