import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.cascades import cascade
from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0034_name_search"),
        ("webwallet", "0008_wallet_link_mail_due"),
    ]

    operations = [
        LockTables("tenants_tenant", "webwallet_personallink"),
        migrations.CreateModel(
            name="ShownCard",
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
                ("digest", models.BinaryField(unique=True)),
                (
                    "request_token",
                    models.CharField(db_default="", default="", max_length=32),
                ),
                ("taken_at", models.DateTimeField(null=True)),
                (
                    "link",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shown_cards",
                        to="webwallet.personallink",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["created_at"], name="webwallet_s_created_6e34bf_idx"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("request_token", ""), ("taken_at", None)),
                            models.Q(
                                ("taken_at__isnull", False),
                                models.Q(("request_token", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="taken_card_has_request",
                    )
                ],
            },
        ),
        cascade("webwallet_showncard", "tenant_id", "tenants_tenant"),
        cascade("webwallet_showncard", "link_id", "webwallet_personallink"),
    ]
