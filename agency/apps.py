import gc

from django.apps import AppConfig

# Before the tasks of any app, which are of this one.
from agency.celery import collects_garbage


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
        if collects_garbage:
            gc.freeze()  # what lives as long as the process
            gc.enable()
