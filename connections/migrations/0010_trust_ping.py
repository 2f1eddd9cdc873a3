from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0009_support_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="ping_id",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=36
            ),
        ),
        migrations.AddField(
            model_name="connection",
            name="pinged_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="ping_answered_at",
            field=models.DateTimeField(null=True),
        ),
    ]
