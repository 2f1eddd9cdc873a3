from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("connections", "0018_deleted_at")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=models.Q(("connectionless", False), ("deleted_at", None)),
                fields=["tenant"],
                name="connection_counted_live",
            ),
        ),
        RemoveIndexConcurrently(model_name="connection", name="connection_counted"),
    ]
