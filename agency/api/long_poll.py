"""`Prefer: wait=N` (RFC 7240) on a read: the answer comes once the other side has done its part.

A wait holds one thread and, while it sleeps, no database connection. At most half of the threads of
a process wait; whoever comes beyond that is answered at once.
"""

import re
from collections.abc import Callable
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from drf_spectacular.utils import OpenApiParameter

MAX_SECONDS = 10
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
PREFERENCE = re.compile(
    r'\s*wait\s*=\s*"?([0-9]{1,9})"?\s*(?:;.*)?', re.IGNORECASE | re.DOTALL
)
PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description=f"`wait=N`: answers when the other side has done its part, or after N seconds, at "
    f"most {MAX_SECONDS}; at once where nothing is awaited of it. `Preference-Applied` on the "
    "answer says that it was heeded: without it, too many were waiting.",
)
slots = BoundedSemaphore(settings.WEB_THREADS // 2)


def wait_for_change(
    read: Callable[[], Any], preferences: str
) -> tuple[Any, int | None]:
    """The row that `read` finds, read again while it `awaits_peer`; and the seconds applied.

    preferences: the Prefer header; only `wait` is used. The seconds are None where too many calls
    wait already.
    """
    row, seconds = read(), seconds_wanted(preferences)
    if not seconds or not row.awaits_peer:
        return row, seconds
    if not slots.acquire(blocking=False):
        return row, None
    try:
        return poll_until_changed(row, read, monotonic() + seconds), seconds
    finally:
        slots.release()


def seconds_wanted(preferences: str) -> int | None:
    """The seconds of the first `wait` (RFC 7240 section 2: later ones do not count), or None."""
    found = filter(None, map(PREFERENCE.fullmatch, preferences.split(",")))
    return next((min(int(one[1]), MAX_SECONDS) for one in found), None)


def poll_until_changed(row: Any, read: Callable[[], Any], end: float) -> Any:
    pause = SHORTEST_PAUSE
    while row.awaits_peer and (left := end - monotonic()) > 0:
        close_old_connections()
        sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
        row = read()
    return row
