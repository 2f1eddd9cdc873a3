"""Days that pass, for tables in partitions by day."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from core.database import clock
from core.database.partitions import first_id, list_partitions
from webhooks.delivery import days_of_calls
from webhooks.delivery.days_of_calls import TABLE


@pytest.fixture
def later(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], None]]:
    """Sets the clock to noon, so many days from today; afterwards tables are as new."""
    now = clock.now
    noon = noon_in(0) - now()
    yield lambda days: monkeypatch.setattr(
        clock, "now", lambda: now() + noon + timedelta(days=days)
    )
    monkeypatch.setattr(clock, "now", now)
    execute(*(f"DROP TABLE {one.name}" for one in list_partitions(TABLE)))
    execute(
        f"DROP TABLE IF EXISTS {TABLE}_before",
        f"CREATE TABLE {TABLE}_before (LIKE {TABLE} INCLUDING ALL)",
        f"ALTER TABLE {TABLE} ATTACH PARTITION {TABLE}_before "
        f"FOR VALUES FROM (MINVALUE) TO ('{first_id(day_in(0))}')",
    )
    days_of_calls.make_days()


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def noon_in(days: int) -> datetime:
    today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return today + timedelta(days=days)


def day_in(days: int) -> date:
    return noon_in(days).date()


def id_in(days: int) -> UUID:
    """A new id of noon, so many days from today."""
    return uuid7(nanoseconds=int(noon_in(days).timestamp()) * 10**9)


def table_of(days: int) -> str:
    return f"{TABLE}_{day_in(days):%Y%m%d}"


def tables() -> list[str]:
    return [one.name for one in list_partitions(TABLE)]
