from django.contrib.postgres.indexes import HashIndex
from django.db import migrations

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("verifications", "0002_open_verifications")]

    operations = [
        BuildIndex(
            model_name="verification",
            index=HashIndex(
                fields=["thread_id"],
                name="verification_by_thread",
            ),
        ),
    ]
