"""Two chains of middleware: a short one for the API, and the whole one for pages.

Sessions, CSRF tokens, messages, people who signed in and static files belong to pages.
A call of the API needs none of them, and they cost more than many a call itself.
What the API is says one list, `api_routes` in agency/urls.py.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_resolver
from django.utils.module_loading import import_string

from core.api.negotiation import wants_html


@cache
def api_segments() -> frozenset[str]:
    """The first segments of the addresses of the API: `connections`, `custodian`…"""
    # ROOT_URLCONF, as Django reads it: this imports all views, once the apps are ready.
    routes: Any = get_resolver().urlconf_module
    names = (str(route.pattern).removeprefix("^") for route in routes.api_routes)
    return frozenset(name.partition("/")[0] for name in names)


def is_call(path: str) -> bool:
    """Return whether a path is of the API, also if there is nothing."""
    return path[1:].partition("/")[0] in api_segments()


class ChainByPath:
    """The first of MIDDLEWARE: calls of the API get API_MIDDLEWARE instead of the rest.

    MIDDLEWARE lists all the rest itself, because Django's checks and allauth look for
    their middleware there.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.respond_to_page = get_response
        self.api = APIHandler()
        self.api.load_middleware()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # An error page for a person shows who is signed in, so it needs the session.
        if is_call(request.path_info) and not wants_html(request):
            return self.api.get_response(request)
        return self.respond_to_page(request)


class APIHandler(BaseHandler):
    """Django's request cycle with the middleware of API_MIDDLEWARE."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Do for API_MIDDLEWARE what Django does for MIDDLEWARE.

        Django's method takes no other setting.
        """
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        views = self._get_response  # type: ignore[attr-defined]
        handler = convert_exception_to_response(views)
        for path in reversed(settings.API_MIDDLEWARE):
            middleware = import_string(path)(handler)
            if hasattr(middleware, "process_view"):
                self._view_middleware.insert(0, middleware.process_view)
            if hasattr(middleware, "process_exception"):
                self._exception_middleware.append(middleware.process_exception)
            handler = convert_exception_to_response(middleware)
        self._middleware_chain = handler
