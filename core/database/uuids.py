"""UUIDs that callers give, and time bounds for those of version 7.

Ids of version 7 are ordered by time (RFC 9562, section 5.7).
"""

import uuid
from datetime import datetime


def parse_uuid(text: str | uuid.UUID) -> uuid.UUID | None:
    """Return the UUID, or None for another text."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None


def unix_milliseconds(moment: datetime) -> int:
    """Return the whole milliseconds since 1970 of a moment."""
    return int(moment.timestamp() * 1000)


def smallest_uuid7(milliseconds: int) -> uuid.UUID:
    """Return the smallest UUIDv7 of a moment, given in milliseconds since 1970.

    Moments that do not fit into its 48 bits give the first or the last possible one.
    """
    return uuid.UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)
