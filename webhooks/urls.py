"""Routes of webhooks, below each prefix of the credentials API."""

from django.urls import path

from webhooks.views import Webhooks

credentials_api = [
    path("webhooks", Webhooks.as_view({"get": "list", "post": "create"})),
    path("webhooks/<str:webhookId>", Webhooks.as_view({"delete": "destroy"})),
    path("webhooks/<str:webhookId>/enable", Webhooks.as_view({"put": "enable"})),
    path("webhooks/<str:webhookId>/disable", Webhooks.as_view({"put": "disable"})),
]
