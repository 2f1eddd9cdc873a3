"""What attributes, their values and conditions on them are in words, as people read them.

For holders in the active language; the studio uses the same words in English.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.text.days import parse_day
from core.text.relative_dates import day_of_number
from verifications.proofs.proof_items import Item
from wallets.anoncreds import normalise_name

# A date is a number in attributes with such names: Aries wallets use the first two, and
# `validUntil` is what docs/verification.md advises.
DATE_NAME = re.compile(r"(date|dateint|validuntil|valid_until)$")
# Of such a name also a year is likely, so only a number of eight digits is a date.
DAY_NAME = re.compile(r"(born|birth|birthday|dob|expires|expiry|since|from|until|day)$")
VALIDITY_NAMES = ("validuntil", "valid_until")  # of the end of a credential


@dataclass(frozen=True)
class Predicate:
    """A condition that is proven without showing the attribute, in words.

    chosen: what the issuer calls the attribute, or "".
    """

    attribute: str
    condition: str
    chosen: str = ""

    @property
    def label(self) -> str:
        return self.chosen or label_of(self.attribute)


def shown_attributes(items: Iterable[Item]) -> list[str]:
    """Each name once.

    An attribute whose value is required is shown too, by a referent of its own.
    """
    names: dict[str, str] = {}
    for item in items:
        shown = [] if item.is_predicate else list(item.attribute_names)
        for name in [*shown, *item.companions]:
            names.setdefault(normalise_name(name), name)
    return list(names.values())


def label_of(name: str) -> str:
    """Return what holders read in place of `validUntil`; other names as they are."""
    return _("Valid until") if is_validity(name) else name


def is_validity(name: str) -> bool:
    """Return whether the attribute is, by its name, the end of the validity."""
    return normalise_name(name) in VALIDITY_NAMES


def ended_on(values: Mapping[str, str], today: date | None = None) -> date | None:
    """The last day of a card with these values, if its validity is over."""
    days = [as_day(name, text) for name, text in values.items() if is_validity(name)]
    now = today or timezone.localdate()
    return min((day for day in days if day and day < now), default=None)


def is_date_name(name: str) -> bool:
    return bool(DATE_NAME.search(normalise_name(name)))


def predicate_of(item: Item, chosen: str = "") -> Predicate:
    """Return what a predicate compares, and the comparison in the active language."""
    name = item.attribute_names[0]
    condition = condition_of(name, item.predicate_type, item.threshold or 0)
    return Predicate(name, condition, chosen)


def condition_of(name: str, kind: str | None, number: int) -> str:
    """The comparison with a number in words. Who compares with a day means a date."""
    if day := as_day(name, str(number)) or day_of_number(number):
        is_today = day == timezone.now().date()
        today_or_later = _("today (%(date)s) or any later day")
        words = {
            ">=": today_or_later if is_today else _("on %(date)s or any later day"),
            ">": _("after %(date)s"),
            "<=": _("on %(date)s or earlier"),
            "<": _("before %(date)s"),
        }
        shown = {"date": date_format(day, "DATE_FORMAT")}
        return words.get(kind or "", _("exactly on %(date)s")) % shown
    words = {
        ">=": _("at least %(number)s"),
        ">": _("more than %(number)s"),
        "<=": _("at most %(number)s"),
        "<": _("less than %(number)s"),
    }
    # A number may be a year, so it has no thousands separators.
    shown = {"number": str(number)}
    return words.get(kind or "", _("exactly %(number)s")) % shown


def as_day(name: str, text: str) -> date | None:
    """The day in a value of an attribute that is a date by name."""
    is_named = is_date_name(name) or DAY_NAME.search(normalise_name(name))
    return parse_day(text) if is_named else None


def value_words(name: str, text: str) -> str:
    """Return an attribute's value as people read it: a date in the active language."""
    day = as_day(name, text)
    return date_format(day, "DATE_FORMAT") if day else text
