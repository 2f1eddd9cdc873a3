from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0021_indexes_of_strangers"),
    ]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="out_of_band",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="link_has_both",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
