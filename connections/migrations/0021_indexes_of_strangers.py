from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while others write
    dependencies = [("connections", "0020_strangers")]

    operations = [
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=Q(connectionless=False, deleted_at=None, stranger=None),
                fields=["tenant"],
                name="connection_counted_own",
            ),
        ),
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=Q(deleted_at=None, stranger__isnull=False),
                fields=["tenant", "stranger"],
                name="connection_of_strangers",
            ),
        ),
        BuildIndex(
            model_name="connection",
            index=models.Index(
                condition=Q(("stranger__isnull", False), ~Q(stranger=F("id"))),
                fields=["id"],
                name="connection_with_origin",
            ),
        ),
        RemoveIndexConcurrently(
            model_name="connection", name="connection_counted_live"
        ),
    ]
