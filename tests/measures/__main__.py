"""Prints the figures of the source; with `walks`, those of single calls too."""

import sys

from tests.measures import source

print(source.report())
if sys.argv[1:] == ["walks"]:
    from tests.measures import walks

    print(walks.report())
elif sys.argv[1:]:
    sys.exit("Usage: python -m tests.measures [walks]")
