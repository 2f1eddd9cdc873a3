from django.contrib.postgres.indexes import HashIndex
from django.db import migrations, models
from django.db.models.functions import Collate, Lower

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("connections", "0008_inbound_thread_id")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                Collate(Lower("name"), "C"),
                condition=models.Q(
                    ("connectionless", False), models.Q(("name", ""), _negated=True)
                ),
                name="connection_by_any_name",
            ),
        ),
        BuildIndex(
            model_name="connection",
            index=HashIndex(
                condition=models.Q(("their_did", ""), _negated=True),
                fields=["their_did"],
                name="connection_by_their_did",
            ),
        ),
        BuildIndex(
            model_name="connection",
            index=HashIndex(
                condition=models.Q(("my_did", ""), _negated=True),
                fields=["my_did"],
                name="connection_by_my_did",
            ),
        ),
    ]
