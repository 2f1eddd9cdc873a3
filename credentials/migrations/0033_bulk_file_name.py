from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0032_filled_checks")]

    operations = [
        migrations.AddField(
            model_name="bulk",
            name="file_name",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=100
            ),
        ),
    ]
