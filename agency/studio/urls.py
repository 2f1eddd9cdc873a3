"""Routes of the studio's pages."""

from django.urls import path
from django.views.generic import RedirectView

from agency.studio import views

app_name = "studio"
key = "studio/organizations/<uuid:tenant_id>/keys/<uuid:key_id>"
urlpatterns = [
    path("", views.home, name="home"),
    path("studio", RedirectView.as_view(pattern_name="studio:organizations")),
    path("studio/", views.organizations, name="organizations"),
    path("studio/organizations/new", views.new_organization, name="new_organization"),
    path("studio/organizations/<uuid:tenant_id>", views.organization, name="organization"),
    path("studio/organizations/<uuid:tenant_id>/keys", views.new_key, name="new_key"),
    path(f"{key}/rotate", views.rotate_key, name="rotate_key"),
    path(f"{key}/revoke", views.revoke_key, name="revoke_key"),
]
