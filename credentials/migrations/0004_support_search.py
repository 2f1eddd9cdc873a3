from django.contrib.postgres.indexes import HashIndex
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("credentials", "0003_open_credentials")]

    operations = [
        migrations.AddIndex(
            model_name="credential",
            index=HashIndex(
                fields=["thread_id"],
                name="credential_by_thread",
            ),
        ),
    ]
