from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0029_name_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulk",
            name="network",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=64
            ),
        ),
    ]
