"""UUIDv7 ids are in the order of time (RFC 9562, section 5.7), so they serve as bounds
in it.
"""

import uuid
from datetime import datetime


def unix_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def smallest_uuid7(milliseconds: int) -> uuid.UUID:
    """The smallest UUIDv7 of a moment, in milliseconds since 1970.

    Moments outside of the 48 bits of a UUIDv7 give its first or its last possible one.
    """
    return uuid.UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)
