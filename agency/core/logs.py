"""Filters for log lines.

Log lines identify a request by its id and its route, never by its address.
"""

import logging
import re
from contextvars import ContextVar
from typing import Any

from celery import signals
from django.http import HttpRequest

from agency.core.version import __version__

logger = logging.getLogger(__name__)
request_id: ContextVar[str] = ContextVar("request_id", default="-")
# The id of the organization whose keys the current request has.
request_tenant: ContextVar[Any] = ContextVar("request_tenant", default=None)
USER_INFO = re.compile(r"(?<=://)[^\s/?#'\"@]*@")
AFTER_HOST = re.compile(r"(?<=://)([^\s/?#'\"]+)[/?#][^\s'\"]*")
API_KEY = re.compile(r"\b(ag[tsp]_)[0-9A-Za-z]{38}\b")
DATABASE_ROW = re.compile(r"^DETAIL:.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
# The same in the repr() of an error, which has one line.
ROW_IN_REPR = re.compile(r"(?<=\\n)DETAIL:[^\n]*")


def id_of_own_call(tenant_id: Any) -> str:
    """Return the id of the current API call if it is this organization's, else "".

    Callers may choose the id, so it is not shown to others whom the call reaches.
    """
    return request_id.get() if request_tenant.get() == tenant_id else ""


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # Django logs 4xx responses after the end of our middleware, which sets the
        # variable.
        of_request = getattr(getattr(record, "request", None), "id", None)
        record.request_id = of_request or request_id.get()
        return True


class RouteFilter(logging.Filter):
    """Removes the addresses of requests from the log lines of all packages.

    Addresses contain ids, tokens of links and, by a caller's mistake, keys.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = record.__dict__.pop("request", None)
        # Celery's copy of the error and of the task's arguments.
        record.__dict__.pop("data", None)
        if isinstance(request, HttpRequest):
            record.__dict__ |= {"method": request.method, "route": route_of(request)}
        record.msg = without_secrets(record.getMessage(), request)
        record.args = None
        if record.exc_info:
            # Formatters print exc_text if there is no exc_info.
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = without_secrets(traceback, request)
            record.exc_info = None
        return True


def route_of(request: object) -> str:
    """Return the URL pattern, such as `i/<str:token>`; `-` if no route matches."""
    match = getattr(request, "resolver_match", None)
    return match.route if match else "-"


def without_secrets(text: str, request: object = None) -> str:
    """Return the text without addresses, API keys and rows quoted by PostgreSQL."""
    if isinstance(request, HttpRequest):
        for address in (request.get_full_path(), request.path):
            if address == "/":
                continue
            # Django escapes all characters outside of ASCII in the logged address.
            escaped = address.encode("unicode_escape").decode()
            text = text.replace(address, route_of(request))
            text = text.replace(escaped, route_of(request))
    text = USER_INFO.sub("", text)
    text = AFTER_HOST.sub(r"\1/...", text)
    text = DATABASE_ROW.sub("DETAIL: left out", text)
    text = ROW_IN_REPR.sub("DETAIL: left out", text)
    return API_KEY.sub(r"\1...", text)


def log_start(process: str) -> None:
    """Log the version. Each long-running process calls this once."""
    logger.info("Agency %s starts: %s", __version__, process)


@signals.worker_init.connect
def log_worker_start(sender: Any, **given: Any) -> None:
    log_start(f"worker {sender.hostname}")


@signals.beat_init.connect
def log_beat_start(**given: Any) -> None:
    log_start("beat")
