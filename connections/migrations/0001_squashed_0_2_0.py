import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("connections", "0001_initial"),
        ("connections", "0002_their_former_until"),
        ("connections", "0003_answering_endpoint"),
        ("connections", "0004_seen_message"),
        ("connections", "0005_counted_connections"),
        ("connections", "0006_opened_at"),
        ("connections", "0007_return_url"),
        ("connections", "0008_inbound_thread_id"),
        ("connections", "0009_support_search"),
        ("connections", "0010_trust_ping"),
        ("connections", "0011_confirmed_requests"),
        ("connections", "0012_expires_at"),
        ("connections", "0013_waiting_rows"),
        ("connections", "0014_features_asked_at"),
        ("connections", "0015_expiry_due_at"),
        ("connections", "0016_links_to_end"),
        ("connections", "0017_end_former_keys"),
        ("connections", "0018_deleted_at"),
        ("connections", "0019_counted_live_connections"),
        ("connections", "0020_strangers"),
        ("connections", "0021_indexes_of_strangers"),
        ("connections", "0022_second_invitation"),
        ("connections", "0023_attachment_format"),
        ("connections", "0024_notes"),
        ("connections", "0025_indexes_of_notes"),
        ("connections", "0026_turns_of_requests"),
        ("connections", "0027_wallet_link"),
    ]

    initial = True

    dependencies = [
        ("tenants", "0001_squashed_0_2_0"),
        ("wallets", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Connection",
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
                    "handshake",
                    models.CharField(default="connections/1.0", max_length=20),
                ),
                ("inviter_key", models.CharField(blank=True, max_length=44)),
                ("sequence", models.PositiveIntegerField(default=0, editable=False)),
                ("my_did", models.CharField(blank=True, max_length=2000)),
                ("rotation_id", models.CharField(blank=True, max_length=128)),
                ("their_former_key", models.CharField(blank=True, max_length=44)),
                ("left_at", models.DateTimeField(null=True)),
                ("token", models.CharField(blank=True, max_length=32)),
                ("invitation", models.JSONField(default=dict)),
                ("connectionless", models.BooleanField(default=False)),
                ("carries_exchange", models.BooleanField(default=False)),
                ("shared", models.BinaryField(null=True)),
                ("connection_id", models.CharField(max_length=128)),
                (
                    "role",
                    models.CharField(
                        choices=[("inviter", "Inviter"), ("invitee", "Invitee")],
                        max_length=8,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("Invited", "Invited"),
                            ("Negotiating", "Negotiating"),
                            ("Connected", "Connected"),
                        ],
                        default="Invited",
                        max_length=12,
                    ),
                ),
                ("multi_party", models.BooleanField(default=False)),
                ("name", models.CharField(blank=True, max_length=200)),
                ("image_url", models.CharField(blank=True, max_length=2000)),
                ("their_did", models.CharField(blank=True, max_length=2000)),
                ("their_key", models.CharField(blank=True, max_length=44)),
                ("their_endpoint", models.CharField(blank=True, max_length=2000)),
                ("their_routing_keys", models.JSONField(default=list)),
                ("thread_id", models.CharField(blank=True, max_length=128)),
                (
                    "message_prefix",
                    models.CharField(default="https://didcomm.org/", max_length=40),
                ),
                (
                    "exchange_version",
                    models.CharField(
                        blank=True,
                        choices=[("1.0", "First"), ("2.0", "Second")],
                        max_length=3,
                    ),
                ),
                ("spoken", models.JSONField(default=dict)),
                ("disclosed", models.JSONField(default=list)),
                ("problem", models.CharField(blank=True, max_length=100)),
                (
                    "invitation_key",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invitation",
                        to="wallets.key",
                    ),
                ),
                (
                    "my_key",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="connection",
                        to="wallets.key",
                    ),
                ),
                (
                    "other_key",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rotated_connection",
                        to="wallets.key",
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
                        related_name="connections",
                        to="wallets.wallet",
                    ),
                ),
                ("their_former_until", models.DateTimeField(null=True)),
                (
                    "answering_endpoint",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=2000
                    ),
                ),
                ("opened_at", models.DateTimeField(null=True)),
                (
                    "return_url",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=2000
                    ),
                ),
                (
                    "ping_id",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=36
                    ),
                ),
                ("pinged_at", models.DateTimeField(null=True)),
                ("ping_answered_at", models.DateTimeField(null=True)),
                ("confirms", models.BooleanField(db_default=False, default=False)),
                ("held_response", models.BinaryField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("features_asked_at", models.DateTimeField(null=True)),
                ("expiry_due_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("stranger", models.UUIDField(editable=False, null=True)),
                ("out_of_band", models.JSONField(null=True)),
                ("link_has_both", models.BooleanField(db_default=False, default=False)),
                (
                    "attachment_format",
                    models.CharField(
                        blank=True,
                        choices=[("hlindy", "Hlindy"), ("anoncreds", "Anoncreds")],
                        db_default="",
                        default="",
                        max_length=9,
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("metadata", models.BinaryField(null=True)),
                (
                    "wallet_link",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=2000
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["wallet", "-id"], name="connections_wallet__c38feb_idx"
                    ),
                    models.Index(
                        condition=models.Q(("inviter_key", ""), _negated=True),
                        fields=["wallet", "inviter_key"],
                        name="connection_by_inviter",
                    ),
                    models.Index(
                        condition=models.Q(("their_key", ""), _negated=True),
                        fields=["wallet", "their_key"],
                        name="connection_by_peer",
                    ),
                    models.Index(
                        fields=["wallet", "state", "id"],
                        name="connections_wallet__c7a23a_idx",
                    ),
                    models.Index(
                        fields=["wallet", "updated_at", "id"],
                        name="connections_wallet__e1dedd_idx",
                    ),
                    models.Index(
                        models.F("wallet"),
                        django.db.models.functions.comparison.Collate(
                            django.db.models.functions.text.Lower("name"), "C"
                        ),
                        models.F("id"),
                        name="connection_by_name",
                    ),
                    models.Index(
                        condition=models.Q(("multi_party", True)),
                        fields=["wallet", "id"],
                        name="connection_multi_party",
                    ),
                    models.Index(
                        django.db.models.functions.comparison.Collate(
                            django.db.models.functions.text.Lower("name"), "C"
                        ),
                        condition=models.Q(
                            ("connectionless", False),
                            models.Q(("name", ""), _negated=True),
                        ),
                        name="connection_by_any_name",
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        condition=models.Q(("their_did", ""), _negated=True),
                        fields=["their_did"],
                        name="connection_by_their_did",
                    ),
                    django.contrib.postgres.indexes.HashIndex(
                        condition=models.Q(("my_did", ""), _negated=True),
                        fields=["my_did"],
                        name="connection_by_my_did",
                    ),
                    models.Index(
                        condition=models.Q(("held_response__isnull", False)),
                        fields=["wallet"],
                        name="connection_held",
                    ),
                    models.Index(
                        condition=models.Q(("expiry_due_at__isnull", False)),
                        fields=["expiry_due_at"],
                        name="connection_expiry_due",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("connectionless", False),
                            ("deleted_at", None),
                            ("stranger", None),
                        ),
                        fields=["tenant"],
                        name="connection_counted_own",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("deleted_at", None), ("stranger__isnull", False)
                        ),
                        fields=["tenant", "stranger"],
                        name="connection_of_strangers",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("stranger__isnull", False),
                            models.Q(("stranger", models.F("id")), _negated=True),
                        ),
                        fields=["id"],
                        name="connection_with_origin",
                    ),
                    models.Index(
                        fields=["wallet", "reference", "id"],
                        name="connection_by_reference",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection_id", "tenant"), name="one_connection_per_id"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("token", ""), _negated=True),
                        fields=("token",),
                        name="one_invitation_per_token",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "Invited"),
                            models.Q(
                                ("my_key__isnull", False),
                                ("role", "inviter"),
                                models.Q(("their_key", ""), _negated=True),
                            ),
                            models.Q(
                                ("connectionless", True),
                                ("my_key__isnull", False),
                                ("role", "inviter"),
                            ),
                            models.Q(("my_key__isnull", False), ("role", "invitee")),
                            _connector="OR",
                        ),
                        name="connection_past_invited_has_keys",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("multi_party", False),
                            ("state", "Invited"),
                            _connector="OR",
                        ),
                        name="multi_party_stays_invited",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BasicMessage",
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
                (
                    "direction",
                    models.CharField(
                        choices=[("Incoming", "Incoming"), ("Outgoing", "Outgoing")],
                        max_length=8,
                    ),
                ),
                ("text", models.BinaryField()),
                ("sent_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "wallet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="wallets.wallet"
                    ),
                ),
                (
                    "connection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="connections.connection",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "indexes": [
                    models.Index(
                        fields=["connection", "-id"],
                        name="connections_connect_56df44_idx",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InboundMessage",
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
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("done", "Done"),
                            ("exhausted", "Exhausted"),
                            ("unconfirmed", "Unconfirmed"),
                        ],
                        default="pending",
                        max_length=11,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lease_until", models.DateTimeField(null=True)),
                ("lease_owner", models.UUIDField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                ("recipient_key", models.CharField(max_length=44)),
                ("sender_key", models.CharField(blank=True, max_length=44)),
                ("message_id", models.CharField(max_length=128)),
                ("type", models.CharField(max_length=100)),
                ("body", models.BinaryField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="tenants.tenant"
                    ),
                ),
                (
                    "thread_id",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=128
                    ),
                ),
                ("origin", models.UUIDField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="inbound_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "exhausted")),
                        fields=["id"],
                        name="inbound_lost",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("origin__isnull", False), ("status", "pending")
                        ),
                        fields=["tenant", "origin", "due_at"],
                        name="inbound_request_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("recipient_key", "sender_key", "message_id"),
                        name="one_message_per_recipient",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OutboundMessage",
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
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("done", "Done"),
                            ("exhausted", "Exhausted"),
                            ("unconfirmed", "Unconfirmed"),
                        ],
                        default="pending",
                        max_length=11,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lease_until", models.DateTimeField(null=True)),
                ("lease_owner", models.UUIDField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                ("recipient_key", models.CharField(max_length=44)),
                ("routing_keys", models.JSONField(default=list)),
                ("endpoint", models.CharField(blank=True, max_length=2000)),
                ("is_hosted", models.BooleanField()),
                ("type", models.CharField(max_length=100)),
                ("thread_id", models.CharField(max_length=128)),
                ("body", models.BinaryField(null=True)),
                ("envelope", models.BinaryField(null=True)),
                ("handed_to", models.CharField(blank=True, max_length=128)),
                (
                    "connection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="connections.connection",
                    ),
                ),
                (
                    "my_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="wallets.key"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="tenants.tenant",
                    ),
                ),
                ("is_optional", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["due_at"],
                        name="outbound_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "exhausted")),
                        fields=["id"],
                        name="outbound_lost",
                    ),
                    models.Index(
                        condition=models.Q(("handed_to", ""), _negated=True),
                        fields=["recipient_key"],
                        name="outbound_handed",
                    ),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["recipient_key", "id"],
                        name="outbound_order",
                    ),
                    models.Index(
                        condition=models.Q(("is_hosted", True), ("status", "pending")),
                        fields=["connection", "id"],
                        name="outbound_hosted",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SeenMessage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "key_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.BinaryField(max_length=16)),
                (
                    "key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="wallets.key",
                    ),
                ),
            ],
        ),
    ]
