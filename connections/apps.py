from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "connections"

    def ready(self) -> None:
        from connections.protocols import handlers  # noqa: F401 (registers them)
