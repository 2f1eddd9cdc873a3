from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [("connections", "0013_waiting_rows")]

    operations = [
        LockTables("connections_connection", "connections_outboundmessage"),
        migrations.AddField(
            model_name="connection",
            name="features_asked_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="outboundmessage",
            name="is_optional",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
