import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("verifications", "0001_initial"),
        ("verifications", "0002_open_verifications"),
        ("verifications", "0003_support_search"),
        ("verifications", "0004_reason"),
        ("verifications", "0005_kiosk"),
        ("verifications", "0006_notes"),
        ("verifications", "0007_indexes_of_notes"),
    ]

    initial = True

    dependencies = [
        ("connections", "0001_squashed_0_2_0"),
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="VerificationPolicy",
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
                ("name", models.CharField(max_length=200)),
                ("version", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
            ],
            options={
                "verbose_name": "verification policy",
                "verbose_name_plural": "verification policies",
                "indexes": [
                    models.Index(
                        fields=["tenant", "reference", "id"], name="policy_by_reference"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Verification",
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
                ("sequence", models.PositiveIntegerField(default=0, editable=False)),
                ("thread_id", models.CharField(max_length=128)),
                ("wire_version", models.CharField(default="1.0", max_length=3)),
                ("wire_format", models.CharField(default="hlindy", max_length=9)),
                (
                    "role",
                    models.CharField(
                        choices=[("verifier", "Verifier"), ("prover", "Prover")],
                        max_length=8,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("Proposed", "Proposed"),
                            ("Requested", "Requested"),
                            ("Accepted", "Accepted"),
                            ("Rejected", "Rejected"),
                        ],
                        default="Requested",
                        max_length=9,
                    ),
                ),
                ("policy_id", models.UUIDField(null=True)),
                ("policy", models.BinaryField()),
                ("proposal", models.BinaryField(null=True)),
                ("request_body", models.BinaryField(null=True)),
                ("presentation", models.BinaryField(null=True)),
                ("proof", models.BinaryField(null=True)),
                ("checks", models.BinaryField(null=True)),
                ("is_valid", models.BooleanField(null=True)),
                ("verified_at", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, max_length=100)),
                (
                    "connection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="connections.connection",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "wallet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="verifications",
                        to="wallets.wallet",
                    ),
                ),
                ("reason", models.BinaryField(null=True)),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
                ("moved_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["wallet", "-id"], name="verificatio_wallet__9a562e_idx"
                    ),
                    models.Index(
                        fields=["wallet", "state", "id"],
                        name="verificatio_wallet__06efd7_idx",
                    ),
                    models.Index(
                        fields=["wallet", "updated_at", "id"],
                        name="verificatio_wallet__912d11_idx",
                    ),
                    models.Index(
                        fields=["wallet", "policy_id", "id"],
                        name="verificatio_wallet__780a9a_idx",
                    ),
                    models.Index(
                        condition=models.Q(("is_valid", False)),
                        fields=["wallet", "id"],
                        name="verification_not_valid",
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["Proposed", "Requested"])),
                        fields=["tenant"],
                        name="verification_open",
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        fields=["thread_id"], name="verification_by_thread"
                    ),
                    models.Index(
                        fields=["wallet", "reference", "id"],
                        name="verification_by_reference",
                    ),
                    models.Index(
                        condition=models.Q(("moved_at__isnull", False)),
                        fields=["wallet", "moved_at"],
                        name="verification_moved",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "thread_id", "role"),
                        name="one_verification_per_thread",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("is_valid", None), ("verified_at", None)),
                            models.Q(
                                ("is_valid__isnull", False),
                                ("state", "Accepted"),
                                ("verified_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="verdict_has_its_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("role", "verifier"),
                                ("state", "Accepted"),
                                _negated=True,
                            ),
                            ("is_valid__isnull", False),
                            _connector="OR",
                        ),
                        name="accepted_proof_has_a_verdict",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["Proposed", "Rejected"]),
                            ("request_body__isnull", False),
                            _connector="OR",
                        ),
                        name="past_proposed_has_its_request",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Kiosk",
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
                ("name", models.CharField(max_length=100)),
                ("seconds", models.PositiveSmallIntegerField()),
                ("shown_items", models.JSONField(default=list)),
                ("sha256", models.BinaryField(unique=True)),
                ("last_seen_at", models.DateTimeField(null=True)),
                ("verification_id", models.UUIDField(null=True)),
                ("shown_at", models.DateTimeField(null=True)),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="verifications.verificationpolicy",
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
    ]
