"""What must be right before a process serves. Each check raises ImproperlyConfigured.

The same sentences end a process that starts, `migrate` (as system checks), and readiness.
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
    """A pooler in between must keep sessions."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if not sessions.are_kept(
            connection.connection, connection.get_connection_params()
        ):
            raise ImproperlyConfigured(sessions.NOT_KEPT)


# By the ids of the system checks
CHECKS = {"agency.E001": check_master_key, "agency.E003": check_sessions}


def require(**signal: Any) -> None:
    """Ends the process with a sentence unless all is right. It starts without PostgreSQL too:
    then readiness says what is wrong later.

    SystemExit, as Celery only logs an exception of a handler of its signals.
    """
    try:
        for check in CHECKS.values():
            check()
    except ImproperlyConfigured as error:
        raise SystemExit(f"Agency does not start. {error}") from None
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        logger.error("PostgreSQL is out of reach, everything waits for it: %s", error)
    finally:
        connection.close()
