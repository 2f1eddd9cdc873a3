from django.apps import AppConfig

import agency.celery  # noqa: F401 (before the tasks of any app, which are of this one)


class AgencyConfig(AppConfig):
    name = "agency"

    def ready(self) -> None:
        from agency.studio.accounts import (
            audit_trail,
            mail_language,
            second_factor,  # noqa: F401 (registers a hook)
            sessions,
        )

        audit_trail.connect_signals()
        sessions.connect_signals()
        mail_language.connect_signals()
