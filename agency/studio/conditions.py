"""The comparisons of policies in words."""

from typing import Any

from verifications.proofs.relative_dates import read_offset
from verifications.wording import condition_of

UNITS = {"d": "day", "m": "month", "y": "year"}


def condition_words(item: dict[str, Any]) -> str:
    """The condition of a normalised predicate, such as "today or any later day"."""
    kind, value = item["predicateType"], item["predicateValue"]
    if isinstance(value, int):
        return condition_of(item["attributeName"], kind, value)
    day = relative_words(value)
    return {
        ">=": f"{day} or any later day",
        ">": f"later than {day}",
        "<=": f"{day} or earlier",
        "<": f"earlier than {day}",
        "==": f"exactly {day}",
    }[kind]


def relative_words(text: str) -> str:
    """Such as "30 days from today" for `today+30d`."""
    offset, unit = read_offset(text)
    if not offset:
        return "today"
    amount = f"{abs(offset)} {UNITS[unit]}{'' if abs(offset) == 1 else 's'}"
    return f"{amount} ago" if offset < 0 else f"{amount} from today"
