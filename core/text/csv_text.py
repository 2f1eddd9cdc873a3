"""CSV that is written line by line and opened in spreadsheets."""

import csv
from collections.abc import Callable, Iterable

# Spreadsheets run cells that begin with these as formulas, the wide ones too.
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


class Line:
    """What csv.writer writes to: it gives back each line."""

    def write(self, text: str) -> str:
        return text


def line_writer() -> Callable[[Iterable[str]], str]:
    """Return a function that writes the cells of a row as one line, made safe.

    The line ends as in CSV, and no cell of it is a formula to a spreadsheet.
    """
    writer = csv.writer(Line())
    return lambda cells: str(writer.writerow([safe_cell(cell) for cell in cells]))


def safe_cell(text: str) -> str:
    """Return the text so that no spreadsheet takes it for a formula."""
    is_formula = text.startswith(FORMULA_STARTS) or (
        text.lstrip().startswith(FORMULA_STARTS)
    )
    return f"'{text}" if is_formula else text
