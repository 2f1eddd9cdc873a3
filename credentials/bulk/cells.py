"""Make the values of attributes of the cells that a spreadsheet has for them."""

import re
from collections.abc import Callable, Iterable
from datetime import date
from functools import partial

from django.db import models

from credentials.bulk.reading import ToValues
from credentials.models.definition import DATE, INTEGER, CredentialDefinition

ISO_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]00:00(?::00)?)?")
LOCAL_DAY = re.compile(r"([0-9]{1,2})[./-] ?([0-9]{1,2})[./-] ?([0-9]{4})")
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)[.,]0+")


class DateForm(models.TextChoices):
    """How a file writes days. `1990-05-17` and `19900517` may always be used."""

    ISO = "iso", "1990-05-17"
    DAY_FIRST = "dayFirst", "17.05.1990 or 17/05/1990"
    MONTH_FIRST = "monthFirst", "05/17/1990"


def converter(definition: CredentialDefinition, form: str = DateForm.ISO) -> ToValues:
    """Return what makes the values of a row of its cells, by the declared types.

    A date becomes eight digits, `18,0` the whole number 18. What cannot be read stays
    as it is, so that the check of values names it. Cells of other attributes are text.
    """
    functions: dict[str, Callable[[str], str]] = {
        DATE: partial(to_day, form=form),
        INTEGER: to_whole_number,
    }
    types = {name: definition.type_of(name) for name in definition.claims}
    by_name = {
        name: functions[kind] for name, kind in types.items() if kind in functions
    }

    def to_values(cells: dict[str, str]) -> dict[str, str]:
        return {
            name: by_name[name](cell) if name in by_name else cell
            for name, cell in cells.items()
        }

    return to_values


def to_day(cell: str, form: str) -> str:
    """Return a day as 19900517, or the cell as it is if it is none in this form."""
    text = cell.strip()
    if found := ISO_DAY.fullmatch(text):
        year, month, day = map(int, found.groups())
    elif form != DateForm.ISO and (found := LOCAL_DAY.fullmatch(text)):
        first, second, year = map(int, found.groups())
        is_day_first = form == DateForm.DAY_FIRST
        day, month = (first, second) if is_day_first else (second, first)
    else:
        return text
    try:
        return f"{date(year, month, day):%Y%m%d}"
    except ValueError:
        return cell


def looks_like_day(cell: str) -> bool:
    """Whether it is written as a day, which there may not be."""
    text = cell.strip()
    return bool(ISO_DAY.fullmatch(text) or LOCAL_DAY.fullmatch(text))


def to_whole_number(cell: str) -> str:
    text = cell.strip()
    found = WHOLE_NUMBER.fullmatch(text)
    return found[1] if found else text


def guess_date_form(cells: Iterable[str]) -> tuple[str, bool]:
    """Return the form of the days in these cells, and whether no other would do.

    Days that all are ISO's, or none at all: ISO.
    """
    found = [one for cell in cells if (one := LOCAL_DAY.fullmatch(cell.strip()))]
    if not found:
        return DateForm.ISO, True
    is_day_first = any(int(one[1]) > 12 for one in found)
    is_month_first = any(int(one[2]) > 12 for one in found)
    is_dotted = any("." in one[0] for one in found)  # nobody writes months first so
    form = (
        DateForm.DAY_FIRST
        if is_day_first or is_dotted or not is_month_first
        else DateForm.MONTH_FIRST
    )
    return form, is_dotted or is_day_first != is_month_first
