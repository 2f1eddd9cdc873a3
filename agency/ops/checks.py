"""What may be wrong with the settings, the static files and the database.

Each check is one of `manage.py check`, with an id that stays. Those of the database are
run by `migrate` too, and CHECKS_AT_START at the start of each process.
"""

import logging
from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection

from agency.server.static_files import COLLECT, CollectedFilesStorage
from core.database import sessions
from core.database.base import is_outage
from credentials.ledgers.webvh import served_logs
from tenants import vault
from tenants.master_key_rotation import is_old_key_needless

logger = logging.getLogger(__name__)

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


@checks.register(deploy=True)
def check_developer_settings(**options: object) -> list[checks.CheckMessage]:
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


@checks.register(deploy=True)
def check_mail(**options: object) -> list[checks.CheckMessage]:
    """agency.W010: no mail can be sent."""
    if settings.EMAIL_URL:
        return []
    return [
        checks.Warning(
            "EMAIL_URL is not set, so no mail is sent: people cannot reset their "
            "passwords, and are not told that a webhook was disabled.",
            hint="Set EMAIL_URL, for example to smtp://user:password@host:port.",
            id="agency.W010",
        )
    ]


@checks.register(deploy=True)
def check_tls_proxy(**options: object) -> list[checks.CheckMessage]:
    """agency.W011: https requests look like http."""
    if settings.TRUST_PROXY or not settings.SECURE:
        return []
    return [
        checks.Warning(
            "PUBLIC_URL begins with https, and TRUST_PROXY is not set. Behind a proxy "
            "every request looks like http: answers carry no HSTS, and http is not "
            "redirected to https.",
            hint="Let the proxy set X-Forwarded-Proto, then set TRUST_PROXY=1. "
            "Nothing is wrong if the web server has TLS itself "
            "(GRANIAN_SSL_CERTIFICATE).",
            id="agency.W011",
        )
    ]


@checks.register
def check_static_files(**options: object) -> list[checks.CheckMessage]:
    """agency.E002: collectstatic was not run, or not since the last upgrade."""
    if not isinstance(staticfiles_storage, CollectedFilesStorage):
        return []
    config: Any = apps.get_app_config("staticfiles")
    for finder in finders.get_finders():
        for name, _ in finder.list(config.ignore_patterns):
            if name not in staticfiles_storage.hashed_files:
                return [
                    checks.Error(
                        f"The static file {name} is not collected. {COLLECT}",
                        id="agency.E002",
                    )
                ]
    return []


@checks.register(checks.Tags.database)
def check_database(
    databases: Sequence[str] | None = None, **options: object
) -> list[checks.CheckMessage]:
    """agency.E001, agency.E003 and agency.E004, of CHECKS_AT_START, and agency.W012."""
    if not databases:
        return []
    failed: list[checks.CheckMessage] = []
    for check_id, check in CHECKS_AT_START.items():
        try:
            check()
        except ImproperlyConfigured as error:
            failed.append(checks.Error(str(error), id=check_id))
    return [*failed, *warn_of_old_master_key()]


def check_master_key() -> None:
    """Raise ImproperlyConfigured if the database was sealed with another master key."""
    if "tenants_datakey" in connection.introspection.table_names():
        vault.check_master_key()


def check_sessions() -> None:
    """Warn of what a pooler before PostgreSQL does not keep.

    Raises ImproperlyConfigured if that is transactions.
    """
    kept = what_is_kept()
    if kept == sessions.Kept.STATEMENTS:
        raise ImproperlyConfigured(sessions.NO_TRANSACTIONS)
    if kept == sessions.Kept.TRANSACTIONS and not has_limits():
        logger.warning("%s %s", sessions.NO_LIMITS, sessions.advise_limits())


def what_is_kept() -> sessions.Kept:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return sessions.what_is_kept(
            connection.connection, connection.get_connection_params()
        )


def has_limits() -> bool:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return sessions.has_limits(connection.connection)


def warn_of_old_master_key() -> list[checks.CheckMessage]:
    """agency.W012: a rotation of the master key has ended, but for the settings."""
    tables = connection.introspection.table_names()
    if "tenants_datakey" not in tables or not is_old_key_needless():
        return []
    return [
        checks.Warning(
            "AGENCY_OLD_MASTER_KEY is given, and wraps no data key any more.",
            hint="Remove it from the settings, and restart all processes.",
            id="agency.W012",
        )
    ]


# By the id of the system check.
CHECKS_AT_START = {
    "agency.E001": check_master_key,
    "agency.E003": check_sessions,
    "agency.E004": served_logs.require_whole,
}


def check_or_exit(**signal: Any) -> None:
    """Run CHECKS_AT_START; log the message of the first one that fails, and exit.

    A process may start while PostgreSQL is out of reach; then readiness reports it.
    Raises SystemExit, because Celery only logs other exceptions of a signal handler.
    """
    try:
        for check in CHECKS_AT_START.values():
            check()
    except ImproperlyConfigured as error:
        logger.critical("Agency does not start. %s", error)
        raise SystemExit(1) from None
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        logger.error("PostgreSQL is out of reach; this process waits for it: %s", error)
    finally:
        connection.close()
