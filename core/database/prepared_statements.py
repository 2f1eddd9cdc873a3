"""Statements that PostgreSQL parses and plans once for each connection."""

from django.conf import settings


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
