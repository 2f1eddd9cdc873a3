import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0009_deliveries_of_object"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        LockTables("auth_user", "webhooks_webhook"),
        migrations.AddField(
            model_name="webhook",
            name="made_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
