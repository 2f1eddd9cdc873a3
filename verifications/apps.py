from django.apps import AppConfig


class VerificationsConfig(AppConfig):
    name = "verifications"

    def ready(self) -> None:
        from verifications.present_proof import handlers  # noqa: F401 (registers them)
