from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    name = "credentials"

    def ready(self) -> None:
        from credentials.issue_credential import handlers  # noqa: F401 (registers them)
