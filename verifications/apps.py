from django.apps import AppConfig


class VerificationsConfig(AppConfig):
    name = "verifications"

    def ready(self) -> None:
        # The imports register the message handlers.
        from verifications import named_checks  # noqa: F401
        from verifications.present_proof import (  # noqa: F401
            endings,
            prover,
            verifier,
        )
