from django.db import migrations, models

from core.database.locks import LockTables


class Migration(migrations.Migration):
    dependencies = [("credentials", "0012_unpublished_revocations")]

    operations = [
        LockTables("credentials_credential", "credentials_credentialdefinition"),
        migrations.AddField(
            model_name="credential",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="credential",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="credential",
            name="moved_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="credentialdefinition",
            name="reference",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="credentialdefinition",
            name="metadata",
            field=models.BinaryField(null=True),
        ),
    ]
