"""One table of the figures of several benchmarks of the same run."""

from bench.cycle import (
    COUNTS,
    CPU,
    FAMILIES,
    MEDIAN,
    READS,
    REST,
    SHARE,
    per_second,
)
from bench.deliveries import calls_per_second
from bench.reads import reads_per_second
from bench.revocation import REVOCABLE, REVOKE_ALONE
from bench.rounds import Table

ROWS = (
    per_second(4),
    per_second(16),
    MEDIAN,
    CPU,
    SHARE,
    REST,
    *(f"    {family}" for family in FAMILIES),
    *COUNTS.values(),
    READS,
    reads_per_second(clients=16, processes=2),
    calls_per_second("http"),
    calls_per_second("https"),
    REVOCABLE,
    REVOKE_ALONE,
)


def show(tables):
    """Show the main rows of these tables, whose names are all different."""
    whole = Table()
    for table in tables:
        whole.rows |= table.rows
    whole.show(ROWS)
