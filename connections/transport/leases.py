"""Run one leased row of a message queue."""

import logging
from collections.abc import Callable
from typing import TypeVar

from core.errors import Unavailable
from core.work.queued_jobs import QueuedJob

logger = logging.getLogger(__name__)
Row = TypeVar("Row", bound=QueuedJob)


class LostLease(Exception):
    """Another process took over the row: this attempt must be rolled back."""


def run_leased(row: Row, work: Callable[[Row], None]) -> None:
    """Make one attempt at a row that is leased to the caller. Never raises.

    `work` finishes the row itself. Unavailable puts the row back for a later attempt.
    """
    if not row.is_leased:
        return
    try:
        work(row)
    except Unavailable as error:
        row.retry(error.code)
    except LostLease:
        logger.info("message %s was taken over", row.pk)
    except Exception:  # a bug must not stop the worker or lose the message
        logger.exception("message %s failed", row.pk)
        row.retry("internal_error")
