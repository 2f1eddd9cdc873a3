"""Measurements, each as a ratio of things measured side by side in one run.

    python -m bench [NAME ...]      all of BENCHES, or those named
    python -m bench fill            many rows: needs 35 GB of the disk, and five minutes
    python -m bench soak MINUTES

Needs nothing running; servers are thrown away afterwards. docs/performance.md holds
the last figures. DURABLE=1: PostgreSQL waits for its disk, which it does not by
default.
"""

import os
import sys
from contextlib import ExitStack, contextmanager

from agency.devtools.embedded import postgres, temporary_home, temporary_servers
from agency.devtools.run import DEVELOPER_SETTINGS

BENCHES = (
    "cycle", "queries", "lists", "revocation", "deliveries", "retention", "stream",
    "inbound", "neighbours", "reads", "profile", "feed_lag", "sizes",
)  # fmt: skip
LONG = ("fill", "soak")


@contextmanager
def run_servers():
    """The environment for empty servers, while the block runs."""
    with ExitStack() as stack:
        if os.environ.get("DURABLE") == "1":
            home = stack.enter_context(temporary_home())
            os.environ["DATABASE_URL"] = postgres.start(home / "postgres")
        yield stack.enter_context(temporary_servers())


def main(names):
    given = [name for name in names if name.isdecimal()]
    names = [name.lstrip("-") for name in names if name not in given]
    unknown = set(names) - {*BENCHES, *LONG}
    if unknown:
        sys.exit(f"Choose from {', '.join((*BENCHES, *LONG))}.")
    with run_servers() as environment:
        quiet = DEVELOPER_SETTINGS | {"LOG_LEVEL": "WARNING", "ALLOWED_HOSTS": "*"}
        quiet |= dict.fromkeys(("INBOX_PER_ADDRESS", "INBOX_PER_RECIPIENT"), "1000000")
        os.environ |= (
            environment | quiet | {"DJANGO_SETTINGS_MODULE": "agency.settings"}
        )
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        for name in names or BENCHES:
            module = __import__(f"bench.{name}", fromlist=["run"])
            module.run(*map(int, given))


if __name__ == "__main__":
    main(sys.argv[1:])
