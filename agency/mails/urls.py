"""Routes of mailings: below the prefix of an API."""

from agency.mails.api import Mailings
from core.api.views import route

credentials_api = [
    route("mailings", Mailings, get="list", post="create"),
    route("mailings/preview", Mailings, post="preview"),
    route("mailings/<str:mailingId>", Mailings, get="retrieve"),
    route("mailings/<str:mailingId>/pause", Mailings, post="pause"),
    route("mailings/<str:mailingId>/resume", Mailings, post="resume"),
    route("mailings/<str:mailingId>/stop", Mailings, post="stop"),
]
