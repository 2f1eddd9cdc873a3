"""The lists of docs/errors.md, made of core/api/openapi/error_codes.yaml."""

from core.api.openapi.error_codes import ErrorTable, read_tables
from tests.docs.entries import LIST, write_entry
from tests.support.paths import DOCS

PAGE = DOCS / "errors.md"


def with_tables(page: str) -> str:
    """The page with its lists as they should be."""
    tables = iter(read_tables())
    return LIST.sub(lambda _: markdown_of(next(tables)), page)


def markdown_of(table: ErrorTable) -> str:
    entries = [
        write_entry(code, ", ".join(statuses), text)
        for code, (*statuses, text) in table.rows.items()
    ]
    return "\n".join(entries) + "\n"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
