"""Routes of the pages of links. QR codes are in connections/urls.py."""

from django.urls import path

from agency.holder_pages import views

urlpatterns = [
    path("i/<str:token>", views.show_link, name="invitation"),
    path("i/<str:token>/status", views.show_status, name="link_status"),
    path("i/<str:token>/colors.css", views.show_colors, name="link_colors"),
    path("i/<str:token>/wallet", views.open_wallet, name="open_wallet"),
]
