import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from core.database.locks import LockTables

# Before this version only the person who created an organization was a member, as its
# owner. If somebody has changed that in the database, the oldest member owns it.
GIVE_OWNERS = """
UPDATE tenants_membership SET role = 'owner' WHERE id IN (
    SELECT DISTINCT ON (tenant_id) id FROM tenants_membership AS oldest
    WHERE NOT EXISTS (
        SELECT FROM tenants_membership AS owner
        WHERE owner.tenant_id = oldest.tenant_id AND owner.role = 'owner'
    )
    ORDER BY tenant_id, id
)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_audit_log"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        LockTables("tenants_tenant", "auth_user"),
        migrations.AlterField(
            model_name="membership",
            name="role",
            field=models.CharField(
                choices=[
                    ("owner", "Owner"),
                    ("operator", "Operator"),
                    ("developer", "Developer"),
                    ("viewer", "Viewer"),
                ],
                default="owner",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="Invitation",
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
                    "email",
                    models.EmailField(help_text="In lower case.", max_length=254),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("operator", "Operator"),
                            ("developer", "Developer"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                ("digest", models.BinaryField(unique=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "email"), name="one_invitation_each"
                    )
                ],
            },
        ),
        migrations.RunSQL(GIVE_OWNERS, migrations.RunSQL.noop),
    ]
