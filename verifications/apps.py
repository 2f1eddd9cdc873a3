from django.apps import AppConfig


class VerificationsConfig(AppConfig):
    name = "verifications"

    def ready(self) -> None:
        # Importing them registers their message handlers.
        from verifications.present_proof import handlers, prover, verifier  # noqa: F401
