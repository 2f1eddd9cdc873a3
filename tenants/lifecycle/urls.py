"""Routes of organizations in the credentials API, and of the provider API.

Fixed words come before ids, because the first match wins.
"""

from django.urls import path, re_path

from tenants.lifecycle.api.assets import serve_picture
from tenants.lifecycle.api.keys import Keys
from tenants.lifecycle.api.organizations import (
    Configuration,
    Networks,
    Pictures,
    Tenants,
)
from tenants.lifecycle.api.providers import (
    Analytics,
    ProviderAssets,
    ProviderNetworks,
    ProviderTenants,
)
from tenants.lifecycle.api.public_did import PublicDids
from tenants.lifecycle.api.request_log import RequestLog
from tenants.lifecycle.api.statistics import Statistics

credentials_api = [
    path("tenants", Tenants.as_view({"get": "list", "post": "create"})),
    path("tenants/issuerStatus", Tenants.as_view({"get": "read_status"})),
    path(
        "tenants/publicDid",
        PublicDids.as_view({"get": "retrieve", "put": "update", "post": "publish"}),
    ),
    path(
        "tenants/<str:tenantId>",
        Tenants.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
    ),
    path("statistics", Statistics.as_view({"get": "list"})),
    path("keys", Keys.as_view({"get": "list", "post": "create"})),
    path("keys/<str:keyId>", Keys.as_view({"delete": "destroy"})),
    path("requestLog", RequestLog.as_view({"get": "list"})),
    path("common/upload", Pictures.as_view({"post": "create"})),
    path("common/networks", Networks.as_view({"get": "list"})),
    path(
        "common/networks/<str:networkId>/txnAuthorAgreement",
        Networks.as_view({"get": "read_agreement", "put": "accept_agreement"}),
    ),
]
wallet_api = [path("config", Configuration.as_view({"get": "retrieve"}))]
provider_api = [
    path(
        "tenants",
        ProviderTenants.as_view(
            {"get": "list", "post": "create", "delete": "destroy_all"}
        ),
    ),
    path(
        "tenants/<str:tenantId>",
        ProviderTenants.as_view(
            {"get": "retrieve", "put": "update", "delete": "destroy"}
        ),
    ),
    path(
        "tenants/<str:tenantId>/keys",
        ProviderTenants.as_view({"get": "show_keys", "patch": "change_keys"}),
    ),
    path(
        "tenants/<str:tenantId>/deletion/undo",
        ProviderTenants.as_view({"post": "undo_deletion"}),
    ),
    path(
        "tenants/<str:tenantId>/deletion/end",
        ProviderTenants.as_view({"post": "end_deletion"}),
    ),
    path("assets", ProviderAssets.as_view({"post": "create"})),
    path("analytics/cloudWallets", Analytics.as_view({"get": "count_wallets"})),
    path("analytics/usage/current", Analytics.as_view({"get": "current_usage"})),
    path("analytics/usage", Analytics.as_view({"get": "search_usage"})),
    path("networks", ProviderNetworks.as_view({"get": "list"})),
    path("regions", ProviderNetworks.as_view({"get": "list_regions"})),
]
public = [
    re_path(
        r"^assets/(?P<name>[\w-]{22}\.(?P<ending>png|jpg|webp|gif))$", serve_picture
    ),
]
