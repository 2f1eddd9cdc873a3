"""Checks before a process serves. Each raises ImproperlyConfigured.

Their messages are printed by a process that does not start, by `migrate` (as system
checks), and by readiness.
"""

import logging
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection

from agency.core.database import sessions
from agency.core.database.base import is_outage
from tenants import vault

logger = logging.getLogger(__name__)


def check_master_key() -> None:
    """The master key must be the one the database was sealed with."""
    if "tenants_datakey" in connection.introspection.table_names():
        vault.check_master_key()


def check_sessions() -> None:
    """A pooler between Agency and PostgreSQL must keep sessions."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if not sessions.are_kept(
            connection.connection, connection.get_connection_params()
        ):
            raise ImproperlyConfigured(sessions.NOT_KEPT)


# By the id of the system check.
CHECKS = {"agency.E001": check_master_key, "agency.E003": check_sessions}


def check_or_exit(**signal: Any) -> None:
    """Exit with the message of a check that fails.

    A process may start while PostgreSQL is out of reach; readiness reports it then.
    Raises SystemExit, as Celery only logs other exceptions of a signal handler.
    """
    try:
        for check in CHECKS.values():
            check()
    except ImproperlyConfigured as error:
        raise SystemExit(f"Agency does not start. {error}") from None
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        logger.error("PostgreSQL is out of reach; this process waits for it: %s", error)
    finally:
        connection.close()
