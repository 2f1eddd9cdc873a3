"""Keys of peers that were replaced before end an hour after this."""

from datetime import timedelta

from django.db import migrations, models
from django.utils import timezone


def end_former_keys(apps, schema_editor):
    rotated = apps.get_model("connections", "Connection").objects.exclude(their_former_key="")
    rotated.update(their_former_until=timezone.now() + timedelta(hours=1))


class Migration(migrations.Migration):
    dependencies = [("connections", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="their_former_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(end_former_keys, migrations.RunPython.noop),
    ]
