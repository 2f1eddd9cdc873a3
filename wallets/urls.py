"""Routes of wallets, under `…/api/`."""

from core.api.views import route
from wallets.api.wallets import Wallets

wallet_api = [
    route("wallets", Wallets, get="list", post="create", delete="destroy_by_query"),
    route("wallets/<str:walletId>", Wallets, patch="update", delete="destroy"),
]
