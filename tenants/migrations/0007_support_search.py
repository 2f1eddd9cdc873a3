from django.db import migrations, models
from django.db.models.functions import Collate, Lower

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("tenants", "0006_members")]

    operations = [
        BuildIndex(
            model_name="tenant",
            index=models.Index(
                Collate(Lower("name"), "C"), name="tenant_by_name"
            ),
        ),
    ]
