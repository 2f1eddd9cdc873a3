"""PINs that somebody guesses at once, which nobody may choose."""

from contextlib import suppress
from datetime import datetime
from functools import cache

from django.contrib.auth.password_validation import CommonPasswordValidator

from core.errors import Invalid

MIN_DIGITS, MAX_DIGITS = 6, 12
# The rows, columns and diagonals of a keypad; backwards they are tried too.
KEY_LINES = ("123", "456", "789", "147", "258", "369", "159", "357", "0")
LINES = {*KEY_LINES, *(line[::-1] for line in KEY_LINES)}
# By length, with two digits or four for the year.
DATES = {6: ("%d%m%y", "%m%d%y", "%y%m%d"), 8: ("%d%m%Y", "%m%d%Y", "%Y%m%d")}
CENTURIES = ("19", "20")
YEARS = range(1900, 2100)


def require_usable(pin: str) -> None:
    """Raise Invalid `pin_not_usable` for one that is too short or guessed at once."""
    is_number = pin.isascii() and pin.isdecimal()
    if not (is_number and MIN_DIGITS <= len(pin) <= MAX_DIGITS) or is_weak(pin):
        raise Invalid(
            "pin_not_usable",
            f"A PIN has {MIN_DIGITS} to {MAX_DIGITS} digits. It is no date, has no "
            "year, nothing repeated and no row of keys, and is none of the commonest.",
        )


def is_weak(pin: str) -> bool:
    """Whether a PIN of 6 to 12 digits is among those that are tried first."""
    return (
        pin in common_pins()
        or pin in (pin + pin)[1:-1]  # the same again: 123123, 121212
        or pin == pin[::-1]
        or len(set(pin)) == 2
        or is_sequence(pin)
        or is_sequence(pin[::2])
        and pin[::2] == pin[1::2]  # 112233
        or is_of_lines(pin)
        or has_year(pin)
        or is_date(pin)
    )


@cache
def common_pins() -> frozenset[str]:
    """The numbers among the 20,000 commonest passwords, a list that Django has.

    It is by Royce Williams, of passwords that leaked: 1,119 have 6 to 12 digits.
    """
    numbers = (word for word in CommonPasswordValidator().passwords if word.isdecimal())
    return frozenset(word for word in numbers if MIN_DIGITS <= len(word) <= MAX_DIGITS)


def is_sequence(pin: str) -> bool:
    """Whether each digit is as far from the one before: 111111, 789012, 135791."""
    pairs = zip(pin, pin[1:], strict=False)
    return len({(int(two) - int(one)) % 10 for one, two in pairs}) == 1


def is_of_lines(pin: str) -> bool:
    """Whether it is of lines of a keypad, the last one perhaps unfinished: 159753."""
    parts = [pin[start : start + 3] for start in range(0, len(pin), 3)]
    return all(any(line.startswith(part) for line in LINES) for part in parts)


def has_year(pin: str) -> bool:
    """Whether it is a year with two more digits, or of several years."""
    if len(pin) == 6:
        return pin.startswith(CENTURIES) or pin[2:].startswith(CENTURIES)
    parts = [pin[start : start + 4] for start in range(0, len(pin), 4)]
    return all(part.startswith(CENTURIES) and len(part) == 4 for part in parts)


def is_date(pin: str) -> bool:
    for form in DATES.get(len(pin), ()):
        with suppress(ValueError):
            if datetime.strptime(pin, form).year in YEARS:
                return True
    return False
