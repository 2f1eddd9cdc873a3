from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [
        ("credentials", "0023_ask_due_at"),
    ]

    operations = [
        BuildIndex(
            model_name="credential",
            index=models.Index(
                condition=models.Q(("ask_due_at__isnull", False)),
                fields=["ask_due_at"],
                name="credential_ask_due",
            ),
        ),
    ]
