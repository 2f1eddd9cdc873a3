"""Routes of connections: relative to the two API prefixes, and the public links."""

from django.urls import path, re_path

from connections.api import didcomm, links
from connections.api.connections import (
    Connections,
    Messages,
    WalletConnections,
    WalletMessages,
)
from connections.api.pings import Pings, WalletPings
from connections.api.protocols import Protocols, WalletProtocols

credentials_api = [
    path("connections", Connections.as_view({"get": "list", "post": "create"})),
    path("connections/requests", Connections.as_view({"post": "request_by_did"})),
    path(
        "connections/<str:connectionId>",
        Connections.as_view(
            {
                "get": "retrieve",
                "put": "confirm_request",
                "patch": "update",
                "delete": "destroy",
            }
        ),
    ),
    path(
        "connections/<str:connectionId>/protocols",
        Protocols.as_view({"get": "retrieve", "put": "update"}),
    ),
    path(
        "connections/<str:connectionId>/rotate", Protocols.as_view({"post": "rotate"})
    ),
    path(
        "connections/<str:connectionId>/ping",
        Pings.as_view({"get": "retrieve", "post": "create"}),
    ),
    path("connections/<str:connectionId>/hangup", Protocols.as_view({"post": "end"})),
    path("messages", Messages.as_view({"post": "create"})),
    path("messages/connection/<str:connectionId>", Messages.as_view({"get": "list"})),
    path("messages/<str:messageId>", Messages.as_view({"get": "retrieve"})),
]
wallet_api = [
    path(
        "<str:walletId>/connections",
        WalletConnections.as_view({"get": "list", "post": "create"}),
    ),
    path(
        "<str:walletId>/connections/invitation",
        WalletConnections.as_view({"post": "accept"}),
    ),
    path(
        "<str:walletId>/connections/invitations",
        WalletConnections.as_view({"get": "list_invitations"}),
    ),
    path(
        "<str:walletId>/connections/requests",
        WalletConnections.as_view({"post": "request_by_did"}),
    ),
    path(
        "<str:walletId>/connections/<str:connectionId>",
        WalletConnections.as_view(
            {
                "get": "retrieve",
                "put": "confirm_request",
                "patch": "update",
                "delete": "destroy",
            }
        ),
    ),
    path(
        "<str:walletId>/connections/<str:connectionId>/protocols",
        WalletProtocols.as_view({"get": "retrieve", "put": "update"}),
    ),
    path(
        "<str:walletId>/connections/<str:connectionId>/ping",
        WalletPings.as_view({"get": "retrieve", "post": "create"}),
    ),
    path("<str:walletId>/messages", WalletMessages.as_view({"post": "create"})),
    path(
        "<str:walletId>/messages/connection/<str:connectionId>",
        WalletMessages.as_view({"get": "list"}),
    ),
    path(
        "<str:walletId>/messages/<str:messageId>",
        WalletMessages.as_view({"get": "retrieve"}),
    ),
]
public = [path("didcomm", didcomm.receive_envelope)]
pages = [
    re_path(
        r"^i/(?P<token>[\w-]+)/qr\.(?P<form>svg|png)$",
        links.show_qr_code,
        name="invitation_qr",
    ),
]
