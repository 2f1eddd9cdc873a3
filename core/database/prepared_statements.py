"""Statements that PostgreSQL parses and plans once for each connection."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from core.call import this_call


def prepare_statements() -> None:
    """Let web processes prepare the statements that a connection runs repeatedly.

    To be called before the first connection. Not for processes that deliver: their
    statements differ too much, and deliveries became slower by a sixth. Not with DEBUG
    either: Django then builds the text of each statement a second time, for its log.
    Connections to a pooler prepare none (sessions.py).
    """
    if settings.DATABASE_PREPARED_STATEMENTS is not False and not settings.DEBUG:
        settings.DATABASES["default"]["OPTIONS"] |= {
            "server_side_binding": True,
            "prepare_threshold": 2,  # prepared when it runs for the third time
        }


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Let PostgreSQL plan the statements of the block for the values that they have.

    For searches: the plan of a prepared statement is for any values, so it reads all
    rows of an organization for the one that is found. Planning takes a millisecond.
    """
    outer = this_call.plans_for_values
    this_call.plans_for_values = True
    try:
        yield
    finally:
        this_call.plans_for_values = outer
