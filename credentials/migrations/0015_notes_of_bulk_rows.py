from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0014_indexes_of_notes")]

    operations = [
        migrations.AddField(
            model_name="bulkrow",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="bulkrow",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
    ]
