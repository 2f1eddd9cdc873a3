from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [("verifications", "0005_kiosk")]

    operations = [
        LockTables("verifications_verification", "verifications_verificationpolicy"),
        migrations.AddField(
            model_name="verification",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="verification",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="verification",
            name="moved_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="verificationpolicy",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="verificationpolicy",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
    ]
