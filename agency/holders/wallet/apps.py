"""The wallet of a holder in a browser: a personal link, a PIN, and what is behind."""

from django.apps import AppConfig


class WebWalletConfig(AppConfig):
    name = "agency.holders.wallet"
    label = "webwallet"
