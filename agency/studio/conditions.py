"""The comparisons of policies in words."""

from core.text.relative_dates import read_offset
from verifications.proofs.policy import PolicyItem
from verifications.wording import condition_of

UNITS = {"d": "day", "m": "month", "y": "year"}


def condition_words(item: PolicyItem) -> str:
    """The condition of a predicate, such as "today or any later day"."""
    kind, value = item.predicate_type or "", item.threshold
    if not isinstance(value, str):
        return condition_of(item.attribute_names[0], kind, value or 0)
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
