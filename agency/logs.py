"""Log lines carry the id of the request (or task) they belong to."""

import logging
from contextvars import ContextVar
from typing import Any

from celery import signals

from agency import __version__

logger = logging.getLogger(__name__)
request_id: ContextVar[str] = ContextVar("request_id", default="-")


class RequestIdFilter(logging.Filter):
    def filter(self, record):
        # Django logs 4xx answers when the middleware that sets the variable has ended already.
        of_request = getattr(getattr(record, "request", None), "id", None)
        record.request_id = of_request or request_id.get()
        return True


def log_start(process: str) -> None:
    """Says which version starts as what. Each long-lived process says it once."""
    logger.info("Agency %s starts: %s", __version__, process)


@signals.worker_init.connect
def log_worker_start(sender: Any, **given: Any) -> None:
    log_start(f"worker {sender.hostname}")


@signals.beat_init.connect
def log_beat_start(**given: Any) -> None:
    log_start("beat")
