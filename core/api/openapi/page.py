"""The page at /docs: Swagger UI. PAGE_POLICY allows no scripts inside the page."""

import json

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from drf_spectacular.views import SpectacularSwaggerView

docs_page = SpectacularSwaggerView.as_view(url_name="openapi")


def example_ids(request: HttpRequest) -> JsonResponse:
    """The demo organization's ids by those of examples.py; empty if no demo ran here."""
    try:
        ids = json.loads(settings.DEMO_FILE.read_text()).get("examples", {})
    except (OSError, ValueError):
        ids = {}
    return JsonResponse(ids)
