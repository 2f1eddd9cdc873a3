from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("credentials", "0016_credential_format")]

    operations = [
        migrations.AlterField(
            model_name="credentialdefinition",
            name="private_key",
            field=models.BinaryField(null=True),
        ),
        migrations.AlterField(
            model_name="credentialdefinition",
            name="key_proof",
            field=models.BinaryField(null=True),
        ),
        migrations.AddConstraint(
            model_name="credentialdefinition",
            constraint=models.CheckConstraint(
                condition=Q(private_key=None, key_proof=None)
                | Q(private_key__isnull=False, key_proof__isnull=False),
                name="definition_key_is_whole",
            ),
        ),
    ]
