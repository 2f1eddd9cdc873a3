"""What does the work of Django here in less time, in one place.

| shortcut | in place of | without it, CPU of a whole cycle |
|---|---|---|
| compiled_sql.py: CompiledQuery, insert_row, update_rows | building SQL anew | +12 % |
| compiled_sql.py: Row.from_db | the constructor of a model | |
| core/api/caller_cache.py: the caller of a request | reading four rows | +5 % |
| base.py: the kept cursor; savepoints that begin late | a cursor for each statement | |
| all of them | | +17 to 21 % |

A cycle is a credential that is offered, accepted, issued and proven by wallets hosted
here, cryptography included (measured side by side in one process, medians of turns).
So they stay, and each does what Django does: without() runs a block without them, and
tests/core/test_shortcuts.py compares a story with and without. The names of Django that
are private and used for this are listed there too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

# Read by each of them; a call in place of it would cost what Row.from_db saves.
are_used = True


@contextmanager
def without() -> Iterator[None]:
    """Let Django do the work itself in the block, in all threads. For tests."""
    global are_used
    are_used = False
    try:
        yield
    finally:
        are_used = True
