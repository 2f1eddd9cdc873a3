"""Routes of organizations in the credentials API, and of the provider API.

Fixed words come before ids, because the first match wins.
"""

from django.urls import re_path

from core.api.views import route
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
from tenants.lifecycle.api.webvh_did import WebvhDids

credentials_api = [
    route("tenants", Tenants, get="list", post="create"),
    route("tenants/issuerStatus", Tenants, get="read_status"),
    route(
        "tenants/publicDid", PublicDids, get="retrieve", put="update", post="publish"
    ),
    route("tenants/webvhDid", WebvhDids, get="retrieve", put="update"),
    route("tenants/webvhDid/rotation", WebvhDids, post="rotate"),
    route("tenants/webvhDid/end", WebvhDids, post="end"),
    route(
        "tenants/<str:tenantId>",
        Tenants,
        get="retrieve",
        put="update",
        delete="destroy",
    ),
    route("statistics", Statistics, get="list"),
    route("keys", Keys, get="list", post="create"),
    route("keys/<str:keyId>", Keys, delete="destroy"),
    route("requestLog", RequestLog, get="list"),
    route("common/upload", Pictures, post="create"),
    route("common/networks", Networks, get="list"),
    route(
        "common/networks/<str:networkId>/txnAuthorAgreement",
        Networks,
        get="read_agreement",
        put="accept_agreement",
    ),
]
wallet_api = [route("config", Configuration, get="retrieve")]
provider_api = [
    route("tenants", ProviderTenants, get="list", post="create", delete="destroy_all"),
    route(
        "tenants/<str:tenantId>",
        ProviderTenants,
        get="retrieve",
        put="update",
        delete="destroy",
    ),
    route(
        "tenants/<str:tenantId>/keys",
        ProviderTenants,
        get="show_keys",
        patch="change_keys",
    ),
    route(
        "tenants/<str:tenantId>/deletion/undo", ProviderTenants, post="undo_deletion"
    ),
    route("tenants/<str:tenantId>/deletion/end", ProviderTenants, post="end_deletion"),
    route("assets", ProviderAssets, post="create"),
    route("analytics/cloudWallets", Analytics, get="count_wallets"),
    route("analytics/usage/current", Analytics, get="current_usage"),
    route("analytics/usage", Analytics, get="search_usage"),
    route("networks", ProviderNetworks, get="list"),
    route("regions", ProviderNetworks, get="list_regions"),
]
public = [
    re_path(
        r"^assets/(?P<name>[\w-]{22}\.(?P<ending>png|jpg|webp|gif))$", serve_picture
    ),
]
