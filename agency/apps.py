from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

# Settings for development and tests. On a server each of them removes a protection.
DEVELOPER_SETTINGS = {
    "agency.W001": (
        "OUTGOING_ALLOW_LOOPBACK",
        True,
        "Webhooks and other agents' endpoints may lead to services of this machine.",
    ),
    "agency.W002": (
        "WEBHOOK_REQUIRE_HTTPS",
        False,
        "Webhooks may be called without TLS, readable on the way.",
    ),
    "agency.W003": (
        "FAULT_INJECTION",
        True,
        "Processes kill themselves where FAULT_POINT says.",
    ),
}


class AgencyConfig(AppConfig):
    name = "agency"

    def ready(self) -> None:
        from agency.ops import deployment_checks
        from agency.server.static_files import check_static_files
        from agency.studio.accounts import (
            audit_trail,
            mail_language,
            second_factor,  # noqa: F401 (registers a hook)
            sessions,
        )

        audit_trail.connect_signals()
        sessions.connect_signals()
        mail_language.connect_signals()
        checks.register(check_static_files)
        checks.register(deployment_checks.check_mail, deploy=True)
        checks.register(deployment_checks.check_tls_proxy, deploy=True)
        checks.register(check_developer_settings, deploy=True)
        checks.register(check_database, checks.Tags.database)


def check_developer_settings(
    app_configs: object, **options: object
) -> list[checks.CheckMessage]:
    """agency.W001 to W003. For DEBUG Django has its own warning, security.W018."""
    return [
        checks.Warning(
            f"{name} is {value}. {consequence}",
            hint=f"Unset {name} on a server that others reach.",
            id=check_id,
        )
        for check_id, (name, value, consequence) in DEVELOPER_SETTINGS.items()
        if getattr(settings, name) is value
    ]


def check_database(
    databases: Sequence[str] | None = None, **options: object
) -> list[checks.CheckMessage]:
    """agency.E001, agency.E003 and agency.W012. E002 is in server/static_files.py.

    agency.E001: the database was sealed with another master key.
    agency.E003: a pooler does not keep sessions.
    agency.W012: the old master key is given, and nothing needs it.
    """
    from agency.ops import startup

    if not databases:
        return []
    failed: list[checks.CheckMessage] = []
    for check_id, check in startup.CHECKS.items():
        try:
            check()
        except ImproperlyConfigured as error:
            failed.append(checks.Error(str(error), id=check_id))
    return [*failed, *startup.warn_of_old_master_key()]
