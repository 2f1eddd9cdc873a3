"""Every code of an error and what it means: error_codes.yaml, by code.

`/docs/errors` and the OpenAPI document show them, and docs/errors.md leads here. Texts
are Markdown, with links from docs/.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from core.api.openapi.descriptions import SafeLoader

FILE = Path(__file__).with_suffix(".yaml")


class ErrorTable(NamedTuple):
    """A table of codes. rows: the cells by code; the code is the first column."""

    title: str
    columns: list[str]
    rows: dict[str, list[str]]


@cache
def read_tables() -> tuple[ErrorTable, ErrorTable]:
    """The errors of the API, and those of calls to endpoints of others."""
    found = yaml.load(FILE.read_text(encoding="utf-8"), SafeLoader)
    codes = {code: [str(cell) for cell in row] for code, row in found["codes"].items()}
    calls = {code: [meaning] for code, meaning in found["calls"].items()}
    return (
        ErrorTable("Errors", ["code", "status", "meaning, and what to do"], codes),
        ErrorTable("Calls to endpoints of others", ["code", "meaning"], calls),
    )


def answered_codes() -> list[str]:
    """The codes that an answer may have; others are of rows of a file alone."""
    return [code for code, row in read_tables()[0].rows.items() if row[0][0].isdigit()]
