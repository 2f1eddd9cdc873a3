"""Routes of the pages of links. QR codes are in connections/urls.py."""

from django.urls import path

from agency.holders.links import kiosks, views

urlpatterns = [
    path("i/<str:token>", views.show_link, name="invitation"),
    path("i/<str:token>/status", views.show_status, name="link_status"),
    path("i/<str:token>/sheet", views.show_sheet, name="link_sheet"),
    path("i/<str:token>/colors.css", views.show_colors, name="link_colors"),
    path("i/<str:token>/wallet", views.open_wallet, name="open_wallet"),
    path("kiosk/<str:token>", kiosks.show_kiosk, name="kiosk"),
    path("kiosk/<str:token>/screen", kiosks.read_screen, name="kiosk_screen"),
    path("kiosk/<str:token>/colors.css", kiosks.show_kiosk_colors, name="kiosk_colors"),
]
