import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0019_recipient_name_of_bulk_rows"),
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        LockTables("credentials_credentialdefinition", "tenants_tenant"),
        migrations.AddField(
            model_name="credentialdefinition",
            name="is_anoncreds",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.CreateModel(
            name="DefinitionFormat",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                (
                    "format",
                    models.CharField(
                        choices=[("anoncreds", "Anoncreds"), ("dc+sd-jwt", "Sd Jwt")],
                        max_length=9,
                    ),
                ),
                ("type_id", models.CharField(max_length=500)),
                ("validity_days", models.PositiveSmallIntegerField(default=365)),
                ("display", models.JSONField(default=dict)),
                ("derived_claims", models.JSONField(default=list)),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="other_formats",
                        to="credentials.credentialdefinition",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "type_id", "format"),
                        name="one_definition_per_type",
                    ),
                    models.UniqueConstraint(
                        fields=("definition", "format"),
                        name="one_format_per_definition",
                    ),
                ],
            },
        ),
    ]
