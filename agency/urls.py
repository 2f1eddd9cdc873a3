"""All routes. Each API is served under the prefixes of all generations of clients."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from agency.holders.wallet import urls as web_wallet
from agency.mails import unsubscribing
from agency.mails import urls as mails
from agency.ops import monitoring, security_contact
from agency.ops.api import health
from agency.studio.accounts import rate_limits
from agency.studio.error_codes import show_error_codes
from agency.support.views import show_queues
from connections import urls as connections
from core.api import error_pages
from core.api.openapi import document
from core.api.views import route
from credentials import urls as credentials
from sandbox import urls as sandbox
from tenants.lifecycle import urls as organizations
from verifications import urls as verifications
from wallets import urls as wallets
from webhooks import urls as webhooks

admin.autodiscover()

# The API of an organization. Its original clients named it agency, then credentials.
credentials_api = [
    *connections.credentials_api,
    *credentials.credentials_api,
    *verifications.credentials_api,
    *wallets.credentials_api,
    *sandbox.credentials_api,
    *organizations.credentials_api,
    *webhooks.credentials_api,
    *mails.credentials_api,
    route("health", health.Health, get="live"),
]
in_wallet = [
    *connections.in_wallet,
    *credentials.in_wallet,
    *verifications.in_wallet,
]
# The API of a holder. Its original clients named it custodian, then wallet.
wallet_api: list[URLPattern | URLResolver] = [
    *organizations.wallet_api,
    *wallets.wallet_api,
    *web_wallet.wallet_api,
    path("<str:walletId>/", include(in_wallet)),
]
# Also without a prefix, as the API of the organization is.
wallet_family: list[URLPattern | URLResolver] = [
    route("api/health", health.Health, get="live"),
    path("api/", include(wallet_api)),
    route("health", health.Health, get="live"),
]
# Below a prefix the root answers too; without one it is the studio's home page.
custodian: list[URLPattern | URLResolver] = [
    route("", health.Health, get="live"),
    *wallet_family,
]
provider_api: list[URLPattern | URLResolver] = [
    *organizations.provider_api,
    route("health", health.Health, get="live"),
]

# All of the API: without a session, and open to the pages of CORS_ORIGINS. A request
# tries one route after the other, and most requests are calls of the API: so its
# prefixes come first, and the pages, which are many, last.
api_routes = [
    *connections.public,
    path("custodian/v1/", include(custodian)),
    path("custodian/", include(custodian)),
    path("wallet/v1/", include(custodian)),
    path("management/v1/", include(provider_api)),
    path("provider/v1/", include(provider_api)),
    path("agency/v1/", include(credentials_api)),
    *credentials_api,
    path("credentials/v1/", include(credentials_api)),
    *wallet_family,
    route("health/ready", health.Health, get="ready"),
    route("health/status", health.Health, get="status"),
    *credentials.public,
    *verifications.public,
    *organizations.public,
    path("openapi.json", document.serve_document, name="openapi"),
]
urlpatterns = [
    *api_routes,
    *connections.pages,
    path("metrics", monitoring.metrics_page),
    path(security_contact.PATH, security_contact.security_page),
    path("docs", document.docs_page, name="docs"),
    path("docs/examples.json", document.example_ids, name="docs_examples"),
    path("docs/errors", show_error_codes, name="error_codes"),
    path("docs/", RedirectView.as_view(pattern_name="docs")),
    path("unsubscribe/<str:token>", unsubscribing.show_page, name="unsubscribe"),
    path("", include("agency.holders.links.urls")),
    path("", include(web_wallet)),
    path("", include("agency.studio.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/queues/", admin.site.admin_view(show_queues), name="queues"),
    path("admin/", admin.site.urls),
]

handler400 = error_pages.bad_request
handler403 = error_pages.forbidden
handler404 = error_pages.not_found
handler429 = rate_limits.handler429  # looked up here by allauth
handler500 = error_pages.server_error
