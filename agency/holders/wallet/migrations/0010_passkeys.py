import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.cascades import cascade
from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0034_name_search"),
        ("webwallet", "0009_shown_card"),
    ]

    operations = [
        LockTables("tenants_tenant", "webwallet_personallink"),
        migrations.CreateModel(
            name="WalletPasskey",
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
                ("credential", models.BinaryField()),
                ("sign_count", models.BigIntegerField(default=0)),
                ("asked_at", models.DateTimeField(null=True)),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "link",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passkeys",
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
        ),
        migrations.AddConstraint(
            model_name="walletpasskey",
            constraint=models.UniqueConstraint(
                fields=("link", "credential"), name="one_passkey_of_link"
            ),
        ),
        cascade("webwallet_walletpasskey", "tenant_id", "tenants_tenant"),
        cascade("webwallet_walletpasskey", "link_id", "webwallet_personallink"),
    ]
