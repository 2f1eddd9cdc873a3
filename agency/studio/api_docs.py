"""The page of the API docs with an organization's own ids in the examples."""

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from agency.studio.own_examples import find_own_ids
from agency.studio.pages import MemberRequest, member_page


@member_page("GET")
def show_api_docs(request: MemberRequest) -> HttpResponse:
    context = {
        "title": settings.SPECTACULAR_SETTINGS["TITLE"],
        "schema_url": reverse("openapi"),
        "examples_url": reverse("studio:api_docs_ids", args=[request.tenant.pk]),
        "server_url": settings.PUBLIC_URL,
    }
    return render(request, "drf_spectacular/swagger_ui.html", context)


@member_page("GET")
def show_own_ids(request: MemberRequest) -> HttpResponse:
    """The organization's own ids by those of examples.py, as /docs/examples.json."""
    return JsonResponse(find_own_ids(request.membership))
