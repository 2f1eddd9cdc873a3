from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("connections", "0015_expiry_due_at")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=models.Q(("expiry_due_at__isnull", False)),
                fields=["expiry_due_at"],
                name="connection_expiry_due",
            ),
        ),
    ]
