"""What a column of a row may be set to."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db.models import Model
from django.db.models.expressions import Combinable

# Also rows, for foreign keys, and JSON, which is only read.
ColumnValue: TypeAlias = (
    "str | bytes | float | date | timedelta | UUID | Model | Combinable | None"
    " | Mapping[str, ColumnValue] | Sequence[ColumnValue]"
)
Columns = dict[str, ColumnValue]  # by the names of their fields
