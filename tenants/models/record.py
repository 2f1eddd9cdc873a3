"""The base of all models with an id of their own."""

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7


class Record(models.Model):
    """A row with a time-ordered id, and the times of its creation and last change."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True
