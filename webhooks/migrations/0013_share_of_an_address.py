from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0012_fail_overs"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="extra_calls",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
