"""Writes that PostgreSQL refuses, though it answers: as an operator must know of them.

Each process remembers its last one, for `/health/status`; metrics count them.
"""

import time
from typing import NamedTuple

REMEMBERED_SECONDS = 15.0
# By SQLSTATE: the label of the metric, and words.
REASONS = {
    "25006": ("read_only", "is read-only, as a standby is"),
    "53100": ("disk_full", "has no space left on its disk"),
}


class Refusal(NamedTuple):
    words: str
    at: float  # time.monotonic()


last_refusal: Refusal | None = None


def record_refusal(error: BaseException | None) -> None:
    """Remember this error of psycopg, if it is a refused write."""
    global last_refusal
    reason = REASONS.get(getattr(error, "sqlstate", None) or "")
    if reason:
        # It reads the settings, as manage.py must first.
        from core.telemetry import metrics

        label, words = reason
        last_refusal = Refusal(words, time.monotonic())
        metrics.count_refused_write(label)


def describe_refusals() -> str | None:
    """Return why PostgreSQL refused a write of this process just now, or None."""
    if not last_refusal:
        return None
    ago = time.monotonic() - last_refusal.at
    if ago > REMEMBERED_SECONDS:
        return None
    words = last_refusal.words
    return f"degraded: PostgreSQL {words}; it refused a write {ago:.0f} s ago"
