from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Collate, Lower

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("connections", "0001_squashed_0_2_0")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=Q(connectionless=False),
                fields=["wallet", "-id"],
                name="connection_listed",
            ),
        ),
        BuildIndex(
            model_name="connection",
            index=models.Index(
                F("wallet"),
                Collate(Lower("name"), "C"),
                F("id"),
                condition=Q(connectionless=False),
                name="connection_listed_by_name",
            ),
        ),
    ]
