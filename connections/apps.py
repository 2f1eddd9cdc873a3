from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "connections"

    def ready(self) -> None:
        from connections.messaging import outbox
        from connections.protocols import (  # noqa: F401 (registers handlers)
            basic_message,
            connectionless,
            did_rotate,
            discover_features,
            handshakes,
            out_of_band,
            trust_ping,
        )
        from connections.transport import delivery

        # The outbox cannot import delivery, which imports the models, which import it.
        outbox.handle_hosted = delivery.handle_hosted
        outbox.deliver_committed = delivery.deliver_committed
