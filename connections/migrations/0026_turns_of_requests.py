from django.db import migrations, models
from django.db.models import Q

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("connections", "0025_indexes_of_notes")]

    operations = [
        BuildIndex(
            model_name="inboundmessage",
            index=models.Index(
                fields=["tenant", "origin", "due_at"],
                condition=Q(status="pending", origin__isnull=False),
                name="inbound_request_due",
            ),
        ),
    ]
