"""URL patterns of webhooks, for each prefix of the credentials API."""

from django.urls import path

from webhooks.api.events import STREAM, Events
from webhooks.api.webhooks import Deliveries, Webhooks

ONE = {"get": "retrieve", "patch": "update", "delete": "destroy"}
credentials_api = [
    path(STREAM, Events.as_view({"get": "stream"})),
    path("events", Events.as_view({"get": "list"})),
    path("webhooks", Webhooks.as_view({"get": "list", "post": "create"})),
    path("webhooks/<str:webhookId>", Webhooks.as_view(ONE)),
    path("webhooks/<str:webhookId>/enable", Webhooks.as_view({"put": "enable"})),
    path("webhooks/<str:webhookId>/disable", Webhooks.as_view({"put": "disable"})),
    path(
        "webhooks/<str:webhookId>/secret", Webhooks.as_view({"post": "rotate_secret"})
    ),
    path(
        "webhooks/<str:webhookId>/example", Webhooks.as_view({"post": "send_example"})
    ),
    path("webhooks/<str:webhookId>/recover", Webhooks.as_view({"post": "recover"})),
    path("webhooks/<str:webhookId>/deliveries", Deliveries.as_view({"get": "list"})),
    path(
        "webhooks/<str:webhookId>/deliveries/<str:deliveryId>",
        Deliveries.as_view({"get": "retrieve"}),
    ),
    path(
        "webhooks/<str:webhookId>/deliveries/<str:deliveryId>/resend",
        Deliveries.as_view({"post": "resend"}),
    ),
]
