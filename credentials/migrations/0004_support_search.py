from django.contrib.postgres.indexes import HashIndex
from django.db import migrations

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("credentials", "0003_open_credentials")]

    operations = [
        BuildIndex(
            model_name="credential",
            index=HashIndex(
                fields=["thread_id"],
                name="credential_by_thread",
            ),
        ),
    ]
