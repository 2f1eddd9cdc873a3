from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("verifications", "0001_squashed_0_2_0")]

    operations = [
        migrations.AddField(
            model_name="verification",
            name="format",
            field=models.CharField(
                choices=[("anoncreds", "Anoncreds"), ("dc+sd-jwt", "Sd Jwt")],
                db_default="anoncreds",
                default="anoncreds",
                max_length=9,
            ),
        ),
        migrations.AddField(
            model_name="verification",
            name="answer_key",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="kiosk",
            name="protocol",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=9
            ),
        ),
    ]
