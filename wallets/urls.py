"""Routes of wallets, under `…/api/`, and of the trust of an organization."""

from core.api.views import route
from wallets.api.trust import CertificateRequests, Certificates, TrustAnchors
from wallets.api.wallets import Wallets

credentials_api = [
    route("openid/trustAnchors", TrustAnchors, get="list", post="create"),
    route("openid/trustAnchors/<str:trustAnchorId>", TrustAnchors, delete="destroy"),
    route("openid/certificateRequest", CertificateRequests, get="retrieve"),
    route("openid/certificates", Certificates, put="update", delete="destroy"),
]

wallet_api = [
    route("wallets", Wallets, get="list", post="create", delete="destroy_by_query"),
    route("wallets/<str:walletId>", Wallets, patch="update", delete="destroy"),
]
