"""Lists, newest first, whose first page reads itself again while somebody looks.

The page is a template with the partial `rows`, which poll.js asks for. A reader may
pause it, because rows that move are hard to read.
"""

from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from agency.studio.newest_first import SEEN, Page, Row, query_with

PAUSED = "paused"  # in the query of a page that is not to be read again


def render_live_list(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    page: Page[Row],
    shown: str,
) -> HttpResponse:
    """Render the page; for htmx its rows, or 204 while they are what it shows.

    shown: what a reader sees of the rows, as a text.
    """
    version = sha256(shown.encode()).hexdigest()[:16]
    is_part = "HX-Request" in request.headers
    if is_part and request.GET.get(SEEN) == version:
        return HttpResponse(status=204)
    is_paused = PAUSED in request.GET
    # The query of the same page, which is paused or goes on.
    toggled = request.GET.copy()
    toggled.pop(SEEN, None)
    if not toggled.pop(PAUSED, None):
        toggled[PAUSED] = "1"
    context |= {
        "page": page,
        "version": version,
        "query": query_with(request),
        "may_watch": not page.newer,
        "is_paused": is_paused,
        "is_watched": not (is_paused or page.newer),
        "toggle": toggled.urlencode(),
    }
    response = render(request, f"{template}#rows" if is_part else template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
