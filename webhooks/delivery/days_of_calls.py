"""The days of attempts, each a partition that is dropped after EVENT_RETENTION_DAYS."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from core.database import clock, partitions
from core.database.uuids import smallest_uuid7, unix_milliseconds
from webhooks.delivery.models import Attempt

TABLE = Attempt._meta.db_table


def kept_since() -> datetime:
    return clock.now() - timedelta(days=settings.EVENT_RETENTION_DAYS)


def make_days() -> None:
    """Make the partitions of the next days that are missing."""
    partitions.make_days(TABLE, kept_since())


def drop_days() -> None:
    partitions.drop_days(TABLE, kept_since())


def first_kept() -> UUID:
    """Return the lowest id of an attempt that is kept, and has a partition."""
    since = smallest_uuid7(unix_milliseconds(kept_since()))
    return max(since, partitions.first_place(TABLE))
