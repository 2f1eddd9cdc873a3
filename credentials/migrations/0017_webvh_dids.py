import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0001_squashed_0_2_0"),
        ("tenants", "0001_squashed_0_2_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebvhDid",
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
                ("did", models.CharField(max_length=255, unique=True)),
                ("host", models.CharField(max_length=100)),
                ("segment", models.CharField(max_length=8, unique=True)),
                ("log", models.TextField()),
                ("versions", models.PositiveSmallIntegerField(default=1)),
                ("next_key", models.BinaryField(null=True)),
                ("assertion_key", models.BinaryField(null=True)),
                ("coming_key", models.BinaryField(null=True)),
                ("rotation_due_at", models.DateTimeField(null=True)),
                ("is_deactivated", models.BooleanField(default=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "did:webvh",
            },
        ),
        migrations.CreateModel(
            name="WebvhResource",
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
                ("digest", models.CharField(max_length=64)),
                ("unique_name", models.CharField(max_length=200)),
                ("document", models.TextField()),
                ("signed_by", models.CharField(max_length=64)),
                (
                    "did",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="resources",
                        to="credentials.webvhdid",
                    ),
                ),
            ],
            options={
                "verbose_name": "attested resource",
            },
        ),
        migrations.AddIndex(
            model_name="webvhdid",
            index=models.Index(
                condition=models.Q(("rotation_due_at__isnull", False)),
                fields=["rotation_due_at"],
                name="webvh_rotation_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="webvhdid",
            constraint=models.UniqueConstraint(
                fields=("tenant",), name="one_webvh_did_each"
            ),
        ),
        migrations.AddConstraint(
            model_name="webvhdid",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("assertion_key", None),
                        ("next_key", None),
                        ("rotation_due_at", None),
                    ),
                    models.Q(
                        ("assertion_key__isnull", False),
                        ("is_deactivated", False),
                        ("next_key__isnull", False),
                        ("tenant__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="webvh_keys_are_whole",
            ),
        ),
        migrations.AddConstraint(
            model_name="webvhdid",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("coming_key", None),
                    ("rotation_due_at__isnull", False),
                    _connector="OR",
                ),
                name="coming_webvh_key_is_due",
            ),
        ),
        migrations.AddIndex(
            model_name="webvhresource",
            index=models.Index(fields=["did", "signed_by"], name="resources_by_signer"),
        ),
        migrations.AddConstraint(
            model_name="webvhresource",
            constraint=models.UniqueConstraint(
                fields=("did", "digest"), name="one_resource_per_digest"
            ),
        ),
        migrations.AddConstraint(
            model_name="webvhresource",
            constraint=models.UniqueConstraint(
                fields=("did", "unique_name"), name="one_resource_per_name"
            ),
        ),
    ]
