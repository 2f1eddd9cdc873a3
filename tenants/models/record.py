"""The bases of the models: of rows with an id, and of those deleted in two steps."""

from typing import Any

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database.compiled_sql import Row


class Record(Row):
    """A row with a time-ordered id, and the times of its creation and last change."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True


class LiveRows(models.Manager[Any]):
    """The rows that are not deleted. `_base_manager` has the others too."""

    def get_queryset(self) -> models.QuerySet[Any]:
        return super().get_queryset().filter(deleted_at=None)
