"""The page at /docs: Swagger UI, with its scripts in files of their own, as PAGE_POLICY wants."""

import json

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from drf_spectacular.views import SpectacularSwaggerView

page = SpectacularSwaggerView.as_view(url_name="openapi")


def example_ids(request: HttpRequest) -> JsonResponse:
    """The demo organization's ids by those of examples.py; none where no demo was played."""
    try:
        ids = json.loads(settings.DEMO_FILE.read_text()).get("examples", {})
    except (OSError, ValueError):
        ids = {}
    return JsonResponse(ids)
