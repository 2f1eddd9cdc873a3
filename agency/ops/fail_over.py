"""Each connection that opens tells whether another server has taken over.

So this is known before anything is written there: which of its numbers are new decides
which cursors of the feed are good (webhooks/events/epochs.py). Heartbeats look too: a
connection may be to a standby that becomes the primary. Behind a pooler transactions
look as well (webhooks/events/timeline.py).
"""

import logging

import psycopg
from psycopg import errors

from core.database.base import is_server_new, when_opened
from wallets import key_pool
from webhooks.events import timeline

logger = logging.getLogger(__name__)
# The errors of a server that does not tell its timeline.
UNTOLD = (errors.InsufficientPrivilege, errors.FeatureNotSupported)
is_server_new.register(timeline.is_switched)


@when_opened.register
def note_switch(connection: psycopg.Connection) -> None:
    """Record a new timeline, and forget the spare keys, which lost calls may have used.

    Where the server does not say it, as before the first migration, nothing happens;
    `doctor` tells (check_timeline).
    """
    try:
        if timeline.note_switch(connection, also=[key_pool.FORGET_SQL]):
            logger.warning(
                "PostgreSQL has another timeline: a replica has taken over, or it was "
                "restored. Organizations are told by the event database_restored."
            )
    except psycopg.Error as error:
        if connection.closed:
            raise
        if isinstance(error, UNTOLD):
            connection.may_change_server = False  # type: ignore[attr-defined]
        logger.debug("the timeline of PostgreSQL is not known: %s", error)
