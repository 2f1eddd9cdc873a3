"""`Prefer: wait=N` (RFC 7240) on a GET: respond once the peer has done its part.

A waiting request uses one thread and, while it sleeps, no database connection. At most
half of the threads of a process wait; further requests get their response at once.
"""

import re
from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol, TypeVar

from django.db import close_old_connections
from drf_spectacular.utils import OpenApiParameter

from core.work import waiting

MAX_WAIT_SECONDS = 10
MIN_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 0.5
PREFERENCE = re.compile(
    r'\s*wait\s*=\s*"?([0-9]{1,9})"?\s*(?:;.*)?', re.IGNORECASE | re.DOTALL
)
PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description=f"`wait=N`: answers when the other side has done its part, or after N seconds, at "
    f"most {MAX_WAIT_SECONDS}; at once where nothing is awaited of it. `Preference-Applied` on the "
    "answer says that it was heeded: without it, too many were waiting.",
)


class AwaitsPeer(Protocol):
    """An object that another party may have to change."""

    @property
    def awaits_peer(self) -> bool: ...


Waiting = TypeVar("Waiting", bound=AwaitsPeer)


def wait_for_change(
    read: Callable[[], Waiting], preferences: str
) -> tuple[Waiting, int | None]:
    """Read the row again until it no longer `awaits_peer`, or the wait is over.

    preferences: the Prefer header, of which only `wait` is used. Returns the row and
    the seconds applied, which are None if none were requested or too many requests
    wait.
    """
    row = read()
    seconds = requested_seconds(preferences)
    if not seconds or not row.awaits_peer:
        return row, seconds
    with waiting.take_peer_slot() as is_free:
        if not is_free:
            return row, None
        end = monotonic() + seconds
        pause = MIN_PAUSE_SECONDS
        while row.awaits_peer and (remaining := end - monotonic()) > 0:
            close_old_connections()
            sleep(min(pause, remaining))
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
            row = read()
        return row, seconds


def requested_seconds(preferences: str) -> int | None:
    """The seconds of the first `wait`, or None. RFC 7240, section 2: later ones do not
    count.
    """
    for preference in preferences.split(","):
        if match := PREFERENCE.fullmatch(preference):
            return min(int(match[1]), MAX_WAIT_SECONDS)
    return None
