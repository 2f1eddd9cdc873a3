"""The bases of the models: of rows read often, with an id, deleted in two steps."""

from collections.abc import Iterable
from typing import Any, Self

from django.db import models
from django.db.models.base import ModelState
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database import shortcuts


class Row(models.Model):
    """A model whose rows are read often."""

    class Meta:
        abstract = True

    @classmethod
    def from_db(  # type: ignore[override]  # the stubs are of a later Django
        cls, db: str | None, field_names: Iterable[str], values: Iterable[Any]
    ) -> Self:
        """Like Django's, without its constructor, which costs more than the rest.

        What is not among the names is not in `__dict__`, so it is deferred.
        """
        if not shortcuts.are_used:
            return super().from_db(db, list(field_names), list(values))
        row = cls.__new__(cls)
        row.__dict__.update(zip(field_names, values, strict=True))
        row._state = ModelState()
        row._state.adding, row._state.db = False, db
        return row


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
