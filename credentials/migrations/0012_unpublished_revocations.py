from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [
        ("credentials", "0011_bulk_sequence"),
    ]

    operations = [
        BuildIndex(
            model_name="credential",
            index=models.Index(
                condition=models.Q(
                    ("revocation_published_at", None),
                    ("role", "issuer"),
                    ("state", "Revoked"),
                ),
                fields=["updated_at"],
                name="credential_unpublished",
            ),
        ),
    ]
