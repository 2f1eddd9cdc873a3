"""Rounds of measurements, and a table with the median and range of each figure.

ROUNDS: the number of rounds. SECONDS: the length of a measurement, at most.
"""

import os
import statistics
from collections import defaultdict

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "20"))
BARE, ACAPY, AGENCY, POOLED = COLUMNS = (
    "bare library",
    "ACA-Py 1.7.0",
    "Agency",
    "Agency by PgBouncer",
)


class Table:
    """The values of all rounds, by row and column."""

    def __init__(self):
        self.rows = defaultdict(lambda: defaultdict(list))

    def add(self, row, column, value):
        self.rows[row][column].append(value)

    def show(self, rows=()):
        """rows: those to show, in this order. All, if none is given."""
        rows = rows or list(self.rows)
        columns = [
            column for column in COLUMNS if any(self.rows[row][column] for row in rows)
        ]
        title = "median (lowest–highest)"
        width = max(map(len, [title, *rows]))
        print(f"\n{title:{width}}", *(f"{column:>22}" for column in columns))
        for row in rows:
            values = (format_values(self.rows[row][column]) for column in columns)
            print(f"{row:{width}}", *(f"{value:>22}" for value in values))
        if BARE in columns:
            self.show_ratios(rows, width)

    def show_ratios(self, rows, width):
        print("\nratio to the bare library in the same round")
        for row in rows:
            bare = self.rows[row][BARE]
            for column in (ACAPY, AGENCY, POOLED):
                # Without bare, or without ACA-Py, there are no pairs.
                pairs = zip(self.rows[row][column], bare, strict=False)
                if ratios := [one / other for one, other in pairs]:
                    print(f"{row:{width}} {column:19} {format_values(ratios)}")


def format_values(values):
    if not values:
        return "–"
    if isinstance(values[0], int):  # a count, which is the same in each round
        return str(values[0])
    middle = statistics.median(values)
    decimals = sum(middle < limit for limit in (0.1, 10, 100))
    return format_spread(values, f".{decimals}f")


def format_spread(values, form):
    """Return the median and the range as text. form: of each, such as `.2f`."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:{form}} ({low:{form}}–{high:{form}})"
