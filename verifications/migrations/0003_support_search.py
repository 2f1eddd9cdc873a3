from django.contrib.postgres.indexes import HashIndex
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("verifications", "0002_open_verifications")]

    operations = [
        migrations.AddIndex(
            model_name="verification",
            index=HashIndex(
                fields=["thread_id"],
                name="verification_by_thread",
            ),
        ),
    ]
