"""Dates that depend on the day of the request, as the values of predicates.

A policy may compare a date (a whole number YYYYMMDD) with `today`, `today+30d`,
`today-6m` or `today-18y`. The policy keeps the text. Each request that is made by it has
the number of that day, so a proof request and its checks have numbers only.

Days are those of UTC. A day that the month does not have becomes its last day: on 31
March `today-1m` is the last of February, and on 29 February `today-18y` is 28 February
of a year that is no leap year.
"""

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import TypeGuard

from core.text.days import parse_day

# The bounds keep the year between 1000 and 9999, so the number has eight digits.
PATTERN = r"today([+-]([0-9]{1,5}d|[0-9]{1,4}m|[0-9]{1,3}y))?"
GRAMMAR = (
    "Write today, or today with + or - and a number of days (up to 99999d), months "
    "(9999m) or years (999y), as in today+30d, today-6m or today-18y."
)
_EXPRESSION = re.compile(PATTERN)


def is_relative_date(value: object) -> TypeGuard[str]:
    """Return whether the value is a text such as `today` or `today-18y`."""
    return isinstance(value, str) and _EXPRESSION.fullmatch(value) is not None


def seems_relative(value: object) -> bool:
    """Whether a text was probably meant as such a date."""
    return isinstance(value, str) and value.strip().lower().startswith("today")


def resolve_value(value: int | str, today: date) -> int:
    """Return the value of a predicate as a number. A number is returned as it is."""
    if isinstance(value, int):
        return value
    number, unit = read_offset(value)
    if unit == "d":
        day = today + timedelta(days=number)
    else:
        months = number * 12 if unit == "y" else number
        year, month = divmod(today.year * 12 + today.month - 1 + months, 12)
        last_day = monthrange(year, month + 1)[1]
        day = date(year, month + 1, min(today.day, last_day))
    return day.year * 10_000 + day.month * 100 + day.day


def read_offset(value: str) -> tuple[int, str]:
    """The distance from today: a number with its sign, and its unit, d, m or y.

    value: a relative date; `today` itself is 0 days.
    """
    offset = value.removeprefix("today") or "+0d"
    return int(offset[:-1]), offset[-1]


def day_of_number(number: object) -> date | None:
    """Return the day that a number such as 20261123 plausibly means, else None.

    From 1900 to 2999.
    """
    if not isinstance(number, int) or not 1900_01_01 <= number <= 2999_12_31:
        return None
    return parse_day(str(number))
