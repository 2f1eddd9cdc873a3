import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    replaces = [
        ("webwallet", "0001_initial"),
        ("webwallet", "0002_made_by_visitor"),
        ("webwallet", "0003_wallet_link_unopened"),
        ("webwallet", "0004_told_at"),
        ("webwallet", "0005_known_browsers"),
        ("webwallet", "0006_wallet_link_made_by"),
    ]

    initial = True

    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        LockTables("wallets_wallet", "tenants_tenant"),
        migrations.CreateModel(
            name="PersonalLink",
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
                ("pin", models.CharField(blank=True, max_length=128)),
                ("pin_chosen_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "wallet",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="personal_link",
                        to="wallets.wallet",
                    ),
                ),
                (
                    "made_by_visitor",
                    models.BooleanField(db_default=False, default=False),
                ),
                ("told_at", models.DateTimeField(null=True)),
                ("made_by_connection", models.UUIDField(null=True)),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("made_by_visitor", True), ("pin", "")),
                        fields=["created_at"],
                        name="wallet_link_unopened",
                    ),
                    models.Index(
                        condition=models.Q(("made_by_connection__isnull", False)),
                        fields=["made_by_connection"],
                        name="wallet_link_made_by",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WalletSession",
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
                    "used_at",
                    models.DateTimeField(
                        db_index=True, default=django.utils.timezone.now
                    ),
                ),
                (
                    "link",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="webwallet.personallink",
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="PinTry",
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
                ("address", models.BinaryField()),
                (
                    "link",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="webwallet.personallink",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                ("browser", models.UUIDField(null=True)),
                ("is_forgiven", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name_plural": "PIN tries",
                "indexes": [
                    models.Index(
                        fields=["address", "created_at"],
                        name="webwallet_p_address_3a97b6_idx",
                    ),
                    models.Index(
                        fields=["created_at"], name="webwallet_p_created_e03a7e_idx"
                    ),
                ],
            },
        ),
    ]
