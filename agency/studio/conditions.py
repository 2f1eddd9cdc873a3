"""The comparisons of policies in words."""

from typing import Any

from agency.holder_pages.contents import condition_of

UNITS = {"d": "day", "m": "month", "y": "year"}


def condition_words(item: dict[str, Any]) -> str:
    """The condition of a predicate of a normalised policy, as "18 years ago or earlier"."""
    kind, value = item["predicateType"], item["predicateValue"]
    if isinstance(value, int):
        return condition_of(item["attributeName"], kind, value)
    day = relative_words(value)
    return {
        ">=": f"{day} or later",
        ">": f"later than {day}",
        "<=": f"{day} or earlier",
        "<": f"earlier than {day}",
        "==": f"exactly {day}",
    }[kind]


def relative_words(text: str) -> str:
    """Such as "30 days from today" for `today+30d`."""
    offset = text.removeprefix("today")
    if not offset or not int(offset[1:-1]):
        return "today"
    number, unit = int(offset[1:-1]), UNITS[offset[-1]]
    amount = f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{amount} ago" if offset.startswith("-") else f"{amount} from today"
