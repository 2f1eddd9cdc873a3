from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("connections", "0012_expires_at")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=models.Q(("held_response__isnull", False)),
                fields=["wallet"],
                name="connection_held",
            ),
        ),
        BuildIndex(
            model_name="outboundmessage",
            index=models.Index(
                condition=models.Q(("is_hosted", True), ("status", "pending")),
                fields=["connection", "id"],
                name="outbound_hosted",
            ),
        ),
    ]
