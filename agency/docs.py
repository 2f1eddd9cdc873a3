"""The page at /docs: Swagger UI, with its scripts in files of their own, as PAGE_POLICY wants."""

from django.http import HttpRequest, JsonResponse
from drf_spectacular.views import SpectacularSwaggerView

from agency import examples

page = SpectacularSwaggerView.as_view(url_name="openapi")


def example_ids(request: HttpRequest) -> JsonResponse:
    """The ids that stand in the place of the examples' own: {id in an example: id of an object}."""
    return JsonResponse(examples.of_demo())
