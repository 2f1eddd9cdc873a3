from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    name = "credentials"

    def ready(self) -> None:
        # Importing them registers the message handlers and the publishers of jobs.
        from credentials import ledgers, publishing  # noqa: F401
        from credentials.issue_credential import handlers  # noqa: F401
