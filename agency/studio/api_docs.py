"""The page of the API docs with an organization's own ids in the examples."""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from agency.studio.own_examples import find_own_ids
from agency.studio.pages import get_membership, studio_page


@studio_page("GET", "HEAD")
def show_api_docs(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    tenant = get_membership(request, tenant_id).tenant
    context = {
        "tenant": tenant,
        "title": settings.SPECTACULAR_SETTINGS["TITLE"],
        "schema_url": reverse("openapi"),
        "examples_url": reverse("studio:api_docs_ids", args=[tenant.pk]),
        "server_url": settings.PUBLIC_URL,
    }
    return render(request, "drf_spectacular/swagger_ui.html", context)


@studio_page("GET", "HEAD")
def show_own_ids(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """The organization's own ids by those of examples.py, as /docs/examples.json."""
    return JsonResponse(find_own_ids(get_membership(request, tenant_id)))
