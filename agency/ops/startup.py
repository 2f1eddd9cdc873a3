"""Checks at the start of a process. Each raises ImproperlyConfigured.

The messages are printed by a process that does not start, by `migrate` (as system
checks), and by the readiness check.
"""

import logging
from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection

from core.database import sessions
from core.database.base import is_outage
from tenants import vault
from tenants.master_key_rotation import is_old_key_needless

logger = logging.getLogger(__name__)


def check_master_key() -> None:
    """Check that the database was sealed with this master key."""
    if "tenants_datakey" in connection.introspection.table_names():
        vault.check_master_key()


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


def check_sessions() -> None:
    """Check that a pooler between Agency and PostgreSQL keeps sessions."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if not sessions.are_kept(
            connection.connection, connection.get_connection_params()
        ):
            raise ImproperlyConfigured(sessions.NOT_KEPT)


# By the id of the system check.
CHECKS = {"agency.E001": check_master_key, "agency.E003": check_sessions}


def check_or_exit(**signal: Any) -> None:
    """Run all checks; log the message of the first one that fails, and exit.

    A process may start while PostgreSQL is out of reach; then readiness reports it.
    Raises SystemExit, because Celery only logs other exceptions of a signal handler.
    """
    try:
        for check in CHECKS.values():
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
