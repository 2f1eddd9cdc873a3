"""Routes of wallets, under `…/api/`."""

from django.urls import path

from wallets.api.wallets import Wallets

wallet_api = [
    path(
        "wallets",
        Wallets.as_view(
            {"get": "list", "post": "create", "delete": "destroy_by_query"}
        ),
    ),
    path(
        "wallets/<str:walletId>",
        Wallets.as_view({"patch": "update", "delete": "destroy"}),
    ),
]
