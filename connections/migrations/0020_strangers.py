from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0019_counted_live_connections")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="stranger",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="inboundmessage",
            name="origin",
            field=models.UUIDField(null=True),
        ),
    ]
