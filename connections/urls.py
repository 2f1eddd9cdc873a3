"""Routes of connections: below the prefix of an API or a wallet, and public ones."""

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
from core.api.views import DETAIL, route

credentials_api = [
    route("connections", Connections, get="list", post="create"),
    route("connections/requests", Connections, post="request_by_did"),
    route(
        "connections/<str:connectionId>", Connections, **DETAIL, put="confirm_request"
    ),
    route(
        "connections/<str:connectionId>/protocols",
        Protocols,
        get="retrieve",
        put="update",
    ),
    route("connections/<str:connectionId>/rotate", Protocols, post="rotate"),
    route("connections/<str:connectionId>/ping", Pings, get="retrieve", post="create"),
    route("connections/<str:connectionId>/hangup", Protocols, post="end"),
    route("messages", Messages, post="create"),
    route("messages/connection/<str:connectionId>", Messages, get="list"),
    route("messages/<str:messageId>", Messages, get="retrieve"),
]
in_wallet = [
    route("connections", WalletConnections, get="list", post="create"),
    route("connections/invitation", WalletConnections, post="accept"),
    route("connections/invitations", WalletConnections, get="list_invitations"),
    route("connections/requests", WalletConnections, post="request_by_did"),
    route(
        "connections/<str:connectionId>",
        WalletConnections,
        **DETAIL,
        put="confirm_request",
    ),
    route(
        "connections/<str:connectionId>/protocols",
        WalletProtocols,
        get="retrieve",
        put="update",
    ),
    route(
        "connections/<str:connectionId>/ping",
        WalletPings,
        get="retrieve",
        post="create",
    ),
    route("messages", WalletMessages, post="create"),
    route("messages/connection/<str:connectionId>", WalletMessages, get="list"),
    route("messages/<str:messageId>", WalletMessages, get="retrieve"),
]
public = [path("didcomm", didcomm.receive_envelope)]
pages = [
    re_path(
        r"^i/(?P<token>[\w-]+)/qr\.(?P<form>svg|png)$",
        links.show_qr_code,
        name="invitation_qr",
    ),
]
