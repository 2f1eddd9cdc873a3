"""The database ENGINE of the settings: Django's PostgreSQL backend with our pool."""

from typing import Any

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from agency.core.database.pool import Pool, limit_response_time

# SQLSTATEs of a server that is stopping, is starting, or has too many connections.
# Lost connections are class 08.
OUTAGE_SQLSTATES = {"57P01", "57P02", "57P03", "53300"}


class DatabaseWrapper(base.DatabaseWrapper):
    @property
    def pool(self) -> Pool | None:
        """Django's property with our Pool: Django has no setting for the class."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if not options or self.alias == NO_DB_ALIAS:
            return None
        if self.alias not in self._connection_pools:
            params = self.get_connection_params() | {"autocommit": True}
            pool = Pool(
                kwargs=params,
                open=False,
                configure=self._configure_connection,
                **options,
            )
            self._connection_pools.setdefault(self.alias, pool)
        return self._connection_pools[self.alias]

    def _configure_connection(self, connection: psycopg.Connection[Any]) -> bool:
        limit_response_time(connection)
        return super()._configure_connection(connection)


def is_outage(error: BaseException | None) -> bool:
    """Return whether this error means that PostgreSQL is out of reach.

    libpq's own errors for lost connections have no SQLSTATE, and psycopg raises some
    of them as plain DatabaseError.
    """
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    if state := getattr(error.__cause__, "sqlstate", None):
        return state.startswith("08") or state in OUTAGE_SQLSTATES
    if type(error) in (DatabaseError, InterfaceError):
        return "connection" in str(error).lower()
    return isinstance(error, OperationalError)


def is_caused_by_outage(error: BaseException | None) -> bool:
    """Return whether an outage is in the chain of causes, as in Django's sessions."""
    while error is not None:
        if is_outage(error):
            return True
        error = error.__cause__ or error.__context__
    return False
