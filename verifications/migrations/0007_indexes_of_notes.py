from django.db import migrations, models
from django.db.models import Q

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("verifications", "0006_notes")]

    operations = [
        BuildIndex(
            model_name="verification",
            index=models.Index(
                fields=["wallet", "reference", "id"],
                name="verification_by_reference",
            ),
        ),
        BuildIndex(
            model_name="verification",
            index=models.Index(
                condition=Q(moved_at__isnull=False),
                fields=["wallet", "moved_at"],
                name="verification_moved",
            ),
        ),
        BuildIndex(
            model_name="verificationpolicy",
            index=models.Index(
                fields=["tenant", "reference", "id"],
                name="policy_by_reference",
            ),
        ),
    ]
