from django.apps import AppConfig


class SandboxConfig(AppConfig):
    name = "sandbox"

    def ready(self) -> None:
        from sandbox import answering  # noqa: F401 (registers a hook)
