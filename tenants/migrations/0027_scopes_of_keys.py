import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0026_deleted_soon"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        LockTables("auth_user", "tenants_apikey"),
        migrations.AddField(
            model_name="apikey",
            name="made_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=16), null=True, size=None
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="values_read_on",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("scopes", None), ("kind", "access_token"), _connector="OR"
                ),
                name="only_tokens_have_scopes",
            ),
        ),
    ]
