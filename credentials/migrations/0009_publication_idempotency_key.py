from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0008_caused_by_request"),
    ]

    operations = [
        migrations.AddField(
            model_name="publication",
            name="idempotency_key",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=255
            ),
        ),
    ]
