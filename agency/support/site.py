"""The admin site: our menu and pages around Django's lists."""

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, path
from django.utils.decorators import method_decorator

from agency.support import menu


class SupportSite(AdminSite):
    site_header = site_title = "Agency support"
    index_title = "Agency support"

    @method_decorator(secure_admin_login)
    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return super().login(request, extra_context)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        # Imported here: the views import models, and the site is made before them.
        from agency.support import views

        ours = [
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
    ) -> list[dict[str, Any]]:
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
