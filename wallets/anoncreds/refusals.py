"""Convert the exceptions of the library to errors of the agency."""

from collections.abc import Iterator
from contextlib import contextmanager

import anoncreds

from core.errors import AgencyError

# Loads the library while one thread imports this: threads that load it at the same time
# panic, all but one.
anoncreds.library_version()

# ValueError and TypeError come from the library's Python wrapper.
REFUSALS = (anoncreds.AnoncredsError, ValueError, TypeError)


@contextmanager
def refused_as(kind: type[AgencyError], code: str, message: str) -> Iterator[None]:
    """Raise this error for exceptions of the library in the block.

    REFUSALS include ValueError and TypeError, so the block may raise ValueError for
    what it refuses itself. An AgencyError passes.
    """
    try:
        yield
    except REFUSALS:
        # Without the cause, because its text may quote attribute values.
        raise kind(code, message) from None
