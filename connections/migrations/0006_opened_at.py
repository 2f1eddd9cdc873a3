from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0005_counted_connections")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="opened_at",
            field=models.DateTimeField(null=True),
        ),
    ]
