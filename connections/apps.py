from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "connections"

    def ready(self) -> None:
        from connections.protocols import (  # noqa: F401 (registers handlers)
            basic_message,
            connectionless,
            did_rotate,
            discover_features,
            handshakes,
            out_of_band,
            trust_ping,
        )
        from connections.transport import delivery  # noqa: F401 (registers hooks)
