import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import core.telemetry.logs

# The choice of version 0.1.0, which its processes need; the next release drops it.
ADD = """
ALTER TABLE webhooks_webhook ADD COLUMN retry_unconfirmed boolean DEFAULT true NOT NULL
"""
DROP = "ALTER TABLE webhooks_webhook DROP COLUMN retry_unconfirmed"


class Migration(migrations.Migration):
    replaces = [
        ("webhooks", "0001_initial"),
        ("webhooks", "0002_unanswered_calls"),
        ("webhooks", "0003_support_search"),
        ("webhooks", "0004_event_request_id"),
        ("webhooks", "0005_feed_epoch"),
        ("webhooks", "0006_caused_by_request"),
        ("webhooks", "0007_former_retry_choice"),
        ("webhooks", "0008_bulk_finished"),
        ("webhooks", "0009_deliveries_of_object"),
        ("webhooks", "0010_maker_of_webhooks"),
        ("webhooks", "0011_start_of_recoveries"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Event",
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
                    "type",
                    models.CharField(
                        choices=[
                            ("new_connection", "New Connection"),
                            ("credential_request", "Credential Request"),
                            ("verification", "Verification"),
                            ("new_inbox_message", "New Inbox Message"),
                            ("credential_offer", "Credential Offer"),
                            ("verification_request", "Verification Request"),
                            ("connection_invited", "Connection Invited"),
                            ("connection_negotiating", "Connection Negotiating"),
                            ("connection_connected", "Connection Connected"),
                            ("connection_ended", "Connection Ended"),
                            ("credential_proposed", "Credential Proposed"),
                            ("credential_offered", "Credential Offered"),
                            ("credential_requested", "Credential Requested"),
                            ("credential_issued", "Credential Issued"),
                            ("credential_rejected", "Credential Rejected"),
                            ("credential_revoked", "Credential Revoked"),
                            ("verification_proposed", "Verification Proposed"),
                            ("verification_requested", "Verification Requested"),
                            ("verification_accepted", "Verification Accepted"),
                            ("verification_judged", "Verification Judged"),
                            ("verification_rejected", "Verification Rejected"),
                            ("message_sent", "Message Sent"),
                            ("webhook_disabled", "Webhook Disabled"),
                            ("bulk_finished", "Bulk Finished"),
                        ],
                        max_length=30,
                    ),
                ),
                ("object_type", models.CharField(max_length=20)),
                ("object_key", models.UUIDField()),
                ("object_id", models.CharField(max_length=128)),
                ("sequence", models.PositiveIntegerField()),
                ("body", models.TextField()),
                ("is_example", models.BooleanField(default=False)),
                ("transaction_id", models.BigIntegerField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="tenants.tenant",
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=64
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="events_in_time"),
                    models.Index(
                        fields=["tenant", "transaction_id", "id"],
                        name="events_as_they_settle",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("object_key", "sequence"),
                        name="one_event_per_object_and_sequence",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
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
                ("url", models.CharField(max_length=2000)),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("Notification", "Notification"),
                            ("DelegatedEndorser", "Delegated Endorser"),
                            ("Zapier", "Zapier"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "dialect",
                    models.CharField(
                        choices=[
                            ("literal", "As the interface is written"),
                            ("client", "As the original clients read"),
                        ],
                        max_length=8,
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                ("parameters", models.BinaryField(null=True)),
                ("secret", models.BinaryField()),
                ("previous_secret", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                (
                    "message_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=30), size=None
                    ),
                ),
                (
                    "retry_unconfirmed",
                    models.BooleanField(db_column="retry_unanswered", null=True),
                ),
                ("has_answered", models.BooleanField(default=False)),
                ("strikes", models.PositiveSmallIntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                (
                    "disabled_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("gone", "The address answered that it is gone (410)"),
                            ("failing", "Every call failed for days"),
                        ],
                        max_length=8,
                    ),
                ),
                ("lost_since", models.DateTimeField(null=True)),
                ("recover_unconfirmed", models.BooleanField(default=False)),
                ("recover_since", models.DateTimeField(null=True)),
                ("notice_due_at", models.DateTimeField(null=True)),
                ("sequence", models.PositiveIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="tenants.tenant",
                    ),
                ),
                ("timeouts", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("recovery_started_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "-id"], name="webhooks_we_tenant__0de9c5_idx"
                    ),
                    models.Index(
                        condition=models.Q(("notice_due_at__isnull", False)),
                        fields=["notice_due_at"],
                        name="notices_due",
                    ),
                    models.Index(
                        condition=models.Q(("recover_since__isnull", False)),
                        fields=["recover_since"],
                        name="recoveries_at_work",
                    ),
                    models.Index(
                        django.db.models.functions.comparison.Collate(
                            django.db.models.functions.text.Left("url", 200), "C"
                        ),
                        name="webhook_by_url",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
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
                ("object_key", models.UUIDField()),
                ("sequence", models.PositiveIntegerField()),
                ("calls", models.PositiveIntegerField(default=0)),
                ("blocks_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="deliveries",
                        to="webhooks.event",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="deliveries",
                        to="webhooks.webhook",
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default=core.telemetry.logs.current_request_id,
                        max_length=64,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(fields=["webhook", "-id"], name="deliveries_in_time"),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["webhook", "due_at"],
                        name="deliveries_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["webhook", "object_key", "sequence"],
                        name="deliveries_in_order",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("lease_owner__isnull", False), ("status", "pending")
                        ),
                        fields=["webhook"],
                        name="deliveries_in_flight",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ["exhausted", "unconfirmed"])
                        ),
                        fields=["webhook", "id"],
                        name="deliveries_lost",
                    ),
                    models.Index(
                        models.F("object_key"),
                        django.db.models.functions.comparison.Cast(
                            "webhook", models.TextField()
                        ),
                        models.F("sequence"),
                        condition=models.Q(("status", "pending")),
                        name="deliveries_of_object",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("event", "webhook"),
                        name="one_delivery_per_event_and_webhook",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
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
                ("number", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("duration_ms", models.PositiveIntegerField()),
                ("status_code", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("answer", models.BinaryField(null=True)),
                (
                    "delivery",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="log",
                        to="webhooks.delivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FeedEpoch",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.UUIDField()),
                ("began_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="one_epoch"
                    )
                ],
            },
        ),
        migrations.RunSQL(ADD, DROP),
    ]
