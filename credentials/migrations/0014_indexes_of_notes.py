from django.db import migrations, models
from django.db.models import Q

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("credentials", "0013_notes")]

    operations = [
        BuildIndex(
            model_name="credential",
            index=models.Index(
                fields=["wallet", "reference", "id"],
                name="credential_by_reference",
            ),
        ),
        BuildIndex(
            model_name="credential",
            index=models.Index(
                condition=Q(moved_at__isnull=False),
                fields=["wallet", "moved_at"],
                name="credential_moved",
            ),
        ),
        BuildIndex(
            model_name="credentialdefinition",
            index=models.Index(
                fields=["tenant", "reference", "id"],
                name="definition_by_reference",
            ),
        ),
    ]
