import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0004_event_request_id")]

    operations = [
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
    ]
