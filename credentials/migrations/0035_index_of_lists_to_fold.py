from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models
from django.db.models import Q

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("credentials", "0034_folded_status_lists")]

    operations = [
        ValidateConstraint(
            model_name="statuslist", name="list_is_whole_or_differs"
        ),
        BuildIndex(
            model_name="statuslist",
            index=models.Index(
                condition=Q(full_at=None), fields=["id"], name="lists_to_fold"
            ),
        ),
    ]
