"""The admin site: our menu and pages around Django's lists."""

from collections.abc import Sequence

from allauth.account.decorators import secure_admin_login
from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import AdminSite, autodiscover
from django.core.checks import CheckMessage
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.decorators import method_decorator
from django.views.generic import RedirectView

from agency.studio.required_factors import has_second_factor, lead_to_setup
from agency.support import menu, views

NEEDS_SECOND_FACTOR = "The admin requires a second factor. Set one up here."


class SupportSite(AdminSite):
    site_header = site_title = "Agency support"
    index_title = "Agency support"

    def check(self, app_configs: Sequence[AppConfig] | None) -> list[CheckMessage]:
        """Check the records too, which else are loaded with the routes."""
        autodiscover()
        return super().check(app_configs)

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the person is staff and, if that is required, has a second factor."""
        if not super().has_permission(request):
            return False
        return not settings.STAFF_SECOND_FACTOR or has_second_factor(request.user)

    def login(
        self, request: HttpRequest, extra_context: dict[str, str] | None = None
    ) -> HttpResponse:
        """Where people are sent who may not open a page."""
        if super().has_permission(request) and not self.has_permission(request):
            return lead_to_setup(request, NEEDS_SECOND_FACTOR)
        return self.sign_in(request, extra_context)

    @method_decorator(secure_admin_login)
    def sign_in(
        self, request: HttpRequest, extra_context: dict[str, str] | None = None
    ) -> HttpResponse:
        return super().login(request, extra_context)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        # Django's own page would tell neither the log nor the list of sessions.
        password = RedirectView.as_view(pattern_name="account_change_password")
        ours = [
            path("password_change/", password, name="password_change"),
            path("search/", self.admin_view(views.show_search), name="search"),
            path(
                "act/<slug:name>/<str:key>/",
                self.admin_view(views.run_action),
                name="support_action",
            ),
        ]
        return [*ours, *super().get_urls()]

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[menu.Section]:
        """Return the menu; of one app, Django's own list."""
        apps = super().get_app_list(request, app_label)
        if app_label:
            return apps
        return menu.build_menu(
            {
                f"{app['app_label']}.{entry['model']._meta.model_name}": entry
                for app in apps
                for entry in app["models"]
            }
        )
