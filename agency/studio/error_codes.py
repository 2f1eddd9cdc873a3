"""The page of all error codes, which each error links to."""

import re

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from core.api.openapi.error_codes import ErrorTable, read_tables

CODE = re.compile(r"`([^`]+)`")
# To other files of docs/, which is not served.
LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")


@require_safe
def show_error_codes(request: HttpRequest) -> HttpResponse:
    tables = [
        {"title": table.title, "head": table.columns, "rows": shown_rows(table)}
        for table in read_tables()
    ]
    return render(request, "studio/error_codes.html", {"tables": tables})


def shown_rows(table: ErrorTable) -> list[tuple[str, list[tuple[str, SafeString]]]]:
    """For each code its cells, as pairs of the column's name and HTML."""
    return [
        (code, list(zip(table.columns, map(as_html, [f"`{code}`", *row]), strict=True)))
        for code, row in table.rows.items()
    ]


def as_html(cell: str) -> SafeString:
    text = LINK.sub(r"\1", escape(cell))
    return mark_safe(CODE.sub(r"<code>\1</code>", text))
