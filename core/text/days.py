"""Days that are written as eight digits, as in 20260131."""

import re
from datetime import date

DAY = re.compile(r"[1-9][0-9]{7}")


def parse_day(raw: str) -> date | None:
    """Return the day that is written as 20260131, or None for other text."""
    if not DAY.fullmatch(raw):
        return None
    try:
        return date.fromisoformat(raw)
    except ValueError:
        return None
