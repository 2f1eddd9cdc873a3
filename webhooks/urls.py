"""URL patterns of webhooks, for each prefix of the credentials API."""

from core.api.views import DETAIL, route
from webhooks.api.events import STREAM, Events
from webhooks.api.webhooks import Deliveries, Webhooks

credentials_api = [
    route(STREAM, Events, get="stream"),
    route("events", Events, get="list"),
    route("webhooks", Webhooks, get="list", post="create"),
    route("webhooks/<str:webhookId>", Webhooks, **DETAIL),
    route("webhooks/<str:webhookId>/enable", Webhooks, put="enable"),
    route("webhooks/<str:webhookId>/disable", Webhooks, put="disable"),
    route("webhooks/<str:webhookId>/secret", Webhooks, post="rotate_secret"),
    route("webhooks/<str:webhookId>/example", Webhooks, post="send_example"),
    route("webhooks/<str:webhookId>/recover", Webhooks, post="recover"),
    route("webhooks/<str:webhookId>/deliveries", Deliveries, get="list"),
    route(
        "webhooks/<str:webhookId>/deliveries/<str:deliveryId>",
        Deliveries,
        get="retrieve",
    ),
    route(
        "webhooks/<str:webhookId>/deliveries/<str:deliveryId>/resend",
        Deliveries,
        post="resend",
    ),
]
