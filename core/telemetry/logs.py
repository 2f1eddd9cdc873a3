"""What stands in log lines, and which call they belong to.

Log lines identify a request by its id and its route, never by its address.
"""

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from celery import signals
from django.http import HttpRequest

from core.call import this_call
from core.version import describe_version

logger = logging.getLogger(__name__)
USER_INFO = re.compile(r"(?<=://)[^\s/?#'\"@]*@")
AFTER_HOST = re.compile(r"(?<=://)([^\s/?#'\"]+)[/?#][^\s'\"]*")
# Tokens of all kinds (tenants/tokens.py), those of kiosks and personal links included.
TOKEN = re.compile(r"\b(ag[a-z]_)[0-9A-Za-z]{38}\b")
DATABASE_ROW = re.compile(r"^DETAIL:.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
# The same in the repr() of an error, which has one line.
ROW_IN_REPR = re.compile(r"(?<=\\n)DETAIL:[^\n]*")


def current_request_id() -> str:
    """Return the id of the current call, for rows that continue its work; else ""."""
    return this_call.request_id


@contextmanager
def continue_request(found: str) -> Iterator[None]:
    """Give log lines and new rows of the block the id of the call that caused them.

    found: as stored in a row; "" changes nothing.
    """
    outer = this_call.request_id
    this_call.request_id = found or outer
    try:
        yield
    finally:
        this_call.request_id = outer


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # Django logs 4xx responses after the end of our middleware, which sets it.
        of_request = getattr(getattr(record, "request", None), "id", None)
        record.request_id = of_request or this_call.request_id or "-"
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


def route_of(request: HttpRequest) -> str:
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
    return TOKEN.sub(r"\1...", text)


def log_start(process: str) -> None:
    """Log the version and the build. Each long-running process calls this once."""
    logger.info("Agency %s starts: %s", describe_version(), process)


@signals.setup_logging.connect
def keep_configuration(**given: Any) -> None:
    """Let Celery configure no logging of its own: it would print lines of text."""
    log_uncaught()


def log_uncaught() -> None:
    """Log warnings of Python, and errors that end a process or a thread."""
    logging.captureWarnings(True)
    sys.excepthook = log_end_of_process
    threading.excepthook = log_end_of_thread


def log_end_of_process(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not issubclass(kind, Exception):  # Ctrl-C
        sys.__excepthook__(kind, error, traceback)
        return
    logger.critical("the process ends: %s", error, exc_info=(kind, error, traceback))


def log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is None or isinstance(ended.exc_value, SystemExit):
        return
    name = ended.thread.name if ended.thread else "-"
    logger.error("thread %s ends: %s", name, ended.exc_value, exc_info=ended.exc_value)


@signals.worker_init.connect
def log_worker_start(sender: Any, **given: Any) -> None:
    log_start(f"worker {sender.hostname}")


@signals.beat_init.connect
def log_beat_start(**given: Any) -> None:
    log_start("beat")
