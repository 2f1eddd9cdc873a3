"""What a log line says of a request: its id and its route, never the address that was called."""

import logging
import re
from contextvars import ContextVar
from typing import Any

from celery import signals
from django.http import HttpRequest

from agency.core.version import __version__

logger = logging.getLogger(__name__)
request_id: ContextVar[str] = ContextVar("request_id", default="-")
USER = re.compile(r"(?<=://)[^\s/?#'\"@]*@")
BEYOND_HOST = re.compile(r"(?<=://)([^\s/?#'\"]+)[/?#][^\s'\"]*")
API_KEY = re.compile(r"\b(ag[tsp]_)[0-9A-Za-z]{38}\b")
ROW_OF_DATABASE = re.compile(r"^DETAIL:.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
ROW_IN_REPR = re.compile(
    r"(?<=\\n)DETAIL:[^\n]*"
)  # on one line, as repr() writes the error


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # Django logs 4xx answers when the middleware that sets the variable has ended already.
        of_request = getattr(getattr(record, "request", None), "id", None)
        record.request_id = of_request or request_id.get()
        return True


class RouteFilter(logging.Filter):
    """Removes addresses from what is written by anybody, and keeps their meaning.

    Addresses hold ids, tokens of links and, where a caller made a mistake, keys in a query.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = record.__dict__.pop("request", None)
        record.__dict__.pop(
            "data", None
        )  # Celery's copy of an error and of the arguments
        if isinstance(request, HttpRequest):
            record.__dict__ |= {"method": request.method, "route": route_of(request)}
        record.msg, record.args = without_secrets(record.getMessage(), request), None
        if record.exc_info:
            # Formatters write exc_text where there is no exc_info.
            written = logging.Formatter().formatException(record.exc_info)
            record.exc_text, record.exc_info = without_secrets(written, request), None
        return True


def route_of(request: object) -> str:
    """The pattern, as `i/<str:token>`; `-` for an address that no route has."""
    match = getattr(request, "resolver_match", None)
    return match.route if match else "-"


def without_secrets(text: str, request: object = None) -> str:
    """The text without addresses, API keys and the rows that PostgreSQL quotes in its errors."""
    if isinstance(request, HttpRequest):
        for address in (request.get_full_path(), request.path):
            # Django writes it with what is not ASCII escaped.
            for written in (address, address.encode("unicode_escape").decode()):
                text = (
                    text.replace(written, route_of(request)) if address != "/" else text
                )
    text = BEYOND_HOST.sub(r"\1/...", USER.sub("", text))
    text = ROW_IN_REPR.sub(
        "DETAIL: left out", ROW_OF_DATABASE.sub("DETAIL: left out", text)
    )
    return API_KEY.sub(r"\1...", text)


def log_start(process: str) -> None:
    """Says which version starts as what. Each long-lived process says it once."""
    logger.info("Agency %s starts: %s", __version__, process)


@signals.worker_init.connect
def log_worker_start(sender: Any, **given: Any) -> None:
    log_start(f"worker {sender.hostname}")


@signals.beat_init.connect
def log_beat_start(**given: Any) -> None:
    log_start("beat")
