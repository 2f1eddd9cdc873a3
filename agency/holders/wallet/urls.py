"""Routes of the web wallets of holders, and of their links in the wallet API."""

from django.urls import path

from agency.holders.wallet import (
    given_links,
    link_acceptance,
    mail_pages,
    offline,
    passkey_pages,
    showing,
    switching,
    views,
    visitors,
)
from agency.holders.wallet.api import PersonalLinks
from core.api.views import route

app_name = "web_wallet"
urlpatterns = [
    path("w/", views.show_cards, name="cards"),
    path("w/pin", views.enter_pin, name="pin"),
    path("w/switch", switching.switch_wallet, name="switch"),
    path("w/colors.css", views.show_colors, name="colors"),
    path("w/manifest.json", views.show_manifest, name="manifest"),
    path("w/worker.js", offline.show_worker, name="worker"),
    path("w/offline", offline.show_offline, name="offline"),
    path("w/me", views.show_me, name="me"),
    path("w/mail", mail_pages.change_address, name="change_mail"),
    path("w/mail/<str:token>", mail_pages.show_confirmation, name="confirm_mail"),
    path("w/leave", views.leave, name="leave"),
    path("w/left", views.show_left, name="left"),
    path("w/inbox", views.show_inbox, name="inbox"),
    path("w/inbox/part", views.show_inbox_part, name="inbox_part"),
    path("w/add", given_links.read_given, name="add"),
    path("w/offers/<uuid:object_id>", views.show_offer, name="offer"),
    path("w/offers/<uuid:object_id>/part", views.show_offer_part, name="offer_part"),
    path("w/requests/<uuid:object_id>", views.show_request, name="request"),
    path(
        "w/requests/<uuid:object_id>/part", views.show_request_part, name="request_part"
    ),
    path("w/history", views.show_history, name="history"),
    path("w/show", showing.show_card, name="show"),
    path("w/show/<uuid:object_id>", showing.show_card_part, name="show_part"),
    path("w/passkey", passkey_pages.open_by_passkey, name="open_by_passkey"),
    path("w/passkeys/new", passkey_pages.add_passkey, name="passkey"),
    path(
        "w/passkeys/<uuid:object_id>/remove",
        passkey_pages.remove_passkey,
        name="remove_passkey",
    ),
    path("w/keep", views.show_own_link, name="keep"),
    path("w/new/<str:token>", visitors.new_wallet, name="new"),
    path("w/take/<str:token>", link_acceptance.accept_link, name="accept_link"),
    path("w/<str:token>", views.open_link, name="open"),
    path("card/<str:token>", showing.show_stranger, name="shown_card"),
    path("kiosk/<str:token>/card", showing.scan_at_kiosk, name="kiosk_card"),
]
wallet_api = [
    route(
        "wallets/<str:walletId>/link",
        PersonalLinks,
        get="retrieve",
        post="create",
        delete="destroy",
    ),
]
