from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0023_attachment_format")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="connection",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
    ]
