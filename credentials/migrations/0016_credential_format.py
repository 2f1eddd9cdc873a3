from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0015_notes_of_bulk_rows")]

    operations = [
        migrations.AddField(
            model_name="credential",
            name="format",
            field=models.CharField(
                choices=[("anoncreds", "Anoncreds"), ("dc+sd-jwt", "Sd Jwt")],
                db_default="anoncreds",
                default="anoncreds",
                max_length=9,
            ),
        ),
    ]
