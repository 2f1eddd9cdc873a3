import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("wallets", "0001_initial"),
        ("wallets", "0002_key_demand"),
        ("wallets", "0003_support_search"),
        ("wallets", "0004_deleted_at"),
        ("wallets", "0005_keys_of_wallet"),
        ("wallets", "0006_one_kind_of_spare_key"),
        ("wallets", "0007_notes"),
        ("wallets", "0008_indexes_of_notes"),
        ("wallets", "0009_webvh_did"),
    ]

    initial = True

    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="SpareKey",
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
                ("attributes", models.PositiveSmallIntegerField(db_index=True)),
                ("parts", models.BinaryField()),
                ("leased_until", models.DateTimeField(null=True)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Wallet",
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
                ("wallet_id", models.CharField(max_length=128)),
                ("owner_name", models.CharField(blank=True, max_length=200)),
                ("is_organization", models.BooleanField(default=False)),
                ("did", models.CharField(blank=True, max_length=64)),
                ("link_secret", models.BinaryField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wallets",
                        to="tenants.tenant",
                    ),
                ),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
                (
                    "webvh_did",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=255
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "-id"], name="wallets_wal_tenant__41053b_idx"
                    ),
                    models.Index(
                        models.F("tenant"),
                        django.db.models.functions.comparison.Collate(
                            django.db.models.functions.text.Lower("owner_name"), "C"
                        ),
                        models.F("id"),
                        name="wallet_by_name",
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        fields=["wallet_id"], name="wallet_by_chosen_id"
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        condition=models.Q(("did", ""), _negated=True),
                        fields=["did"],
                        name="wallet_by_did",
                    ),
                    models.Index(
                        fields=["tenant", "reference", "id"], name="wallet_by_reference"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "wallet_id"), name="one_wallet_per_id"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_organization", True)),
                        fields=("tenant",),
                        name="one_wallet_of_the_organization",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Key",
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
                ("verkey", models.CharField(max_length=44, unique=True)),
                ("seed", models.BinaryField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="tenants.tenant",
                    ),
                ),
                (
                    "wallet",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="keys",
                        to="wallets.wallet",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["wallet", "id"], name="keys_of_wallet")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("retired_at", None), ("seed__isnull", False)),
                            models.Q(
                                ("retired_at__isnull", False),
                                ("seed", None),
                                ("wallet", None),
                            ),
                            _connector="OR",
                        ),
                        name="key_is_live_or_tombstone",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyRequest",
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
                ("organization", models.UUIDField()),
                ("is_waiting", models.BooleanField(default=True)),
                ("alive_until", models.DateTimeField()),
                ("served_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="KeyFiller",
            fields=[
                (
                    "host",
                    models.CharField(max_length=255, primary_key=True, serialize=False),
                ),
                ("leased_until", models.DateTimeField()),
            ],
        ),
    ]
