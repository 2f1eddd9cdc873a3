from django.db import migrations

from core.database.partitions import PartitionByDay


class Migration(migrations.Migration):
    atomic = False  # rows are checked while others write
    dependencies = [("webhooks", "0015_mailing_finished")]

    operations = [
        PartitionByDay(
            "webhooks_attempt", {"webhooks_attempt_delivery_id_bb1708b1": "delivery_id"}
        )
    ]
