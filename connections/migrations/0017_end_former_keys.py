"""Keys of peers that were replaced before 0002_their_former_until end in an hour."""

from datetime import timedelta

from django.db import migrations
from django.utils import timezone

from core.database.backfill import update_in_batches


def end_former_keys(apps, schema_editor):
    connections = apps.get_model("connections", "Connection").objects
    rotated = connections.filter(their_former_until=None).exclude(their_former_key="")
    update_in_batches(rotated, their_former_until=timezone.now() + timedelta(hours=1))


class Migration(migrations.Migration):
    atomic = False  # each batch is a transaction
    dependencies = [("connections", "0016_links_to_end")]

    operations = [
        migrations.RunPython(end_former_keys, migrations.RunPython.noop),
    ]
