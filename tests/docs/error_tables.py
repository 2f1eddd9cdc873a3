"""The tables of docs/errors.md, made of core/api/openapi/error_codes.yaml."""

import re

from core.api.openapi.error_codes import ErrorTable, read_tables
from tests.support.paths import DOCS

PAGE = DOCS / "errors.md"
TABLE = re.compile(r"^\| code \|.*\n(?:\|.*\n)+", re.MULTILINE)


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    tables = iter(read_tables())
    return TABLE.sub(lambda _: markdown_of(next(tables)), page)


def markdown_of(table: ErrorTable) -> str:
    rows = [[f"`{code}`", *row] for code, row in table.rows.items()]
    lines = [" | ".join(row) for row in (table.columns, *rows)]
    head, *body = [f"| {line} |\n" for line in lines]
    return "".join([head, f"|{'---|' * len(table.columns)}\n", *body])


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
