"""Measurements, each as a ratio of things measured side by side in one run.

    python -m bench [NAME ...]      all of BENCHES, or those named

Needs nothing running; servers are thrown away afterwards. docs/performance.md holds
the last figures.
"""

import os
import sys

from agency.devtools.embedded import temporary_servers
from agency.devtools.run import DEVELOPER_SETTINGS

BENCHES = (
    "cycle", "queries", "lists", "revocation", "deliveries", "retention", "stream",
    "inbound", "neighbours", "reads", "profile",
)  # fmt: skip


def main(names):
    unknown = set(names) - set(BENCHES)
    if unknown:
        sys.exit(f"Choose from {', '.join(BENCHES)}.")
    with temporary_servers() as environment:
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
            module.run()


if __name__ == "__main__":
    main(sys.argv[1:])
