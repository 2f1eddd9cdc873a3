"""Cells of spreadsheets as values of dates and integers."""

import pytest

from credentials.bulk.cells import DateForm, guess_date_form, to_day, to_whole_number

ISO, DAY_FIRST, MONTH_FIRST = DateForm.ISO, DateForm.DAY_FIRST, DateForm.MONTH_FIRST


@pytest.mark.parametrize(
    ("cell", "form", "value"),
    [
        ("1990-05-17", ISO, "19900517"),
        (" 1990-05-17T00:00:00 ", DAY_FIRST, "19900517"),
        ("19900517", MONTH_FIRST, "19900517"),
        ("17.05.1990", DAY_FIRST, "19900517"),
        ("7. 5. 1990", DAY_FIRST, "19900507"),
        ("05/17/1990", MONTH_FIRST, "19900517"),
        ("17.05.1990", ISO, "17.05.1990"),
        ("05/17/1990", DAY_FIRST, "05/17/1990"),
        ("30.02.1990", DAY_FIRST, "30.02.1990"),
        ("17.05.90", DAY_FIRST, "17.05.90"),
        ("0000-00-00", ISO, "0000-00-00"),
        ("soon", DAY_FIRST, "soon"),
    ],
)
def test_days(cell, form, value):
    assert to_day(cell, form) == value


def test_whole_numbers():
    cells = ["42", " 42,0 ", "-7.00", "1,5", "1.000,00", "x"]
    values = ["42", "42", "-7", "1,5", "1.000,00", "x"]
    assert list(map(to_whole_number, cells)) == values


@pytest.mark.parametrize(
    ("cells", "guess"),
    [
        (["1990-05-17", "", "x"], (ISO, True)),
        (["05.04.1990"], (DAY_FIRST, True)),
        (["05/04/1990", "17/05/1990"], (DAY_FIRST, True)),
        (["05/04/1990", "05/17/1990"], (MONTH_FIRST, True)),
        (["05/04/1990"], (DAY_FIRST, False)),
        (["13/01/1990", "01/13/1990"], (DAY_FIRST, False)),
    ],
)
def test_the_form_is_found_where_only_one_would_do(cells, guess):
    assert guess_date_form(cells) == guess
