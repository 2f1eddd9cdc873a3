"""The page of all error codes, which each error links to: tables of docs/errors.md."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

CODE = re.compile(r"`([^`]+)`")
# To other files of docs/, which is not served.
LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")


@require_safe
def show_error_codes(request: HttpRequest) -> HttpResponse:
    return render(request, "studio/error_codes.html", {"tables": read_tables()})


@cache
def read_tables() -> list[dict[str, Any]]:
    """The tables: `{"title", "head", "rows"}`.

    A row is its code, and its cells as pairs of the column's name and HTML.
    """
    text = Path(settings.BASE_DIR, "docs", "errors.md").read_text(encoding="utf-8")
    tables: list[dict[str, Any]] = []
    title = ""
    for block in re.split(r"\n{2,}", text):
        if block.startswith("#"):
            title = block.partition("\n")[0].lstrip("# ")
        if not block.startswith("| code"):
            continue
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in block.strip().splitlines()
        )
        shown = [
            (row[0].strip("`"), list(zip(head, map(as_html, row), strict=True)))
            for row in rows
        ]
        tables.append({"title": title, "head": head, "rows": shown})
    return tables


def as_html(cell: str) -> SafeString:
    text = LINK.sub(r"\1", escape(cell))
    return mark_safe(CODE.sub(r"<code>\1</code>", text))
