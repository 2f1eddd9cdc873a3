import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

ROW = [
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
        models.DateTimeField(default=django.utils.timezone.now, editable=False),
    ),
    (
        "updated_at",
        models.DateTimeField(default=django.utils.timezone.now, editable=False),
    ),
]


class Migration(migrations.Migration):
    dependencies = [("credentials", "0017_webvh_dids")]

    operations = [
        migrations.CreateModel(
            name="ReadLog",
            fields=[
                *ROW,
                ("did", models.CharField(max_length=255, unique=True)),
                ("versions", models.PositiveSmallIntegerField()),
                ("log", models.JSONField()),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="ReadResource",
            fields=[
                *ROW,
                ("resource_id", models.CharField(max_length=500, unique=True)),
                ("kind", models.CharField(max_length=32)),
                ("content", models.JSONField()),
                ("links", models.JSONField(default=list)),
            ],
            options={"abstract": False},
        ),
    ]
