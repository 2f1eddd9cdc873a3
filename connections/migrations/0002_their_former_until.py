"""Keys of peers that were replaced before end an hour after 0017_end_former_keys."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="their_former_until",
            field=models.DateTimeField(null=True),
        ),
    ]
