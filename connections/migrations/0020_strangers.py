from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [("connections", "0019_counted_live_connections")]

    operations = [
        LockTables("connections_connection", "connections_inboundmessage"),
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
