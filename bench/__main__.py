"""Measurements, each as a ratio of things measured side by side in one run.

    python -m bench [NAME ...]      all of BENCHES, or those named
    python -m bench summary         those of SUMMARY, and a table of the main figures
    python -m bench fill            many rows: needs 35 GB of the disk, six minutes
    python -m bench soak MINUTES

A run with all of SUMMARY ends with that table. Needs nothing running; servers are
thrown away afterwards. docs/performance.md holds the last figures. The environment:

- ROUNDS, SECONDS: number of rounds and longest measurement (5, 20). ROUNDS=1 SECONDS=5
  is a try; `neighbours` (3) and `fill` (20, at most 30) take ROUNDS too.
- ATTACKS: those of `neighbours`, such as `rubbish,many_predicates`.
- ACAPY: a Python with acapy-agent, of which `cycle` runs two agents beside.
- POOLER=1: `cycle` measures a second product behind PgBouncer beside.
- LINKS: of the registry that `webvh` reads.
- DURABLE=1: PostgreSQL waits for its disk, which it does not by default.
- FILL_ROWS=1000,1000000, FILL_ORGANIZATIONS=10,10000, FILL_PEOPLE=1000,100000: the sizes
  of `fill`, which marks a ratio above 1.2 (of people 1.3) with `!`.
- FILL_PARTS=calls,workers,people: what `fill` measures.
"""

import os
import sys
from contextlib import ExitStack, contextmanager

from agency.devtools.embedded import postgres, temporary_home, temporary_servers
from agency.devtools.run import DEVELOPER_SETTINGS

BENCHES = (
    "cycle", "queries", "lists", "revocation", "deliveries", "retention", "stream",
    "inbound", "openid", "neighbours", "reads", "profile", "feed_lag", "sizes", "address",
    "webvh",
)  # fmt: skip
SUMMARY = ("cycle", "reads", "deliveries", "revocation")
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
    if set(names) - {*BENCHES, *LONG, "summary"}:
        sys.exit(f"Choose from {', '.join((*BENCHES, *LONG, 'summary'))}.")
    if "summary" in names:
        names = [name for name in names if name not in ("summary", *SUMMARY)]
        names += SUMMARY
    with run_servers() as environment:
        quiet = DEVELOPER_SETTINGS | {"LOG_LEVEL": "WARNING", "ALLOWED_HOSTS": "*"}
        limits = (
            "INBOX_PER_ADDRESS",
            "INBOX_PER_RECIPIENT",
            "REQUESTS_PER_INVITATION",
        )
        quiet |= dict.fromkeys(limits, "1000000")
        os.environ |= (
            environment | quiet | {"DJANGO_SETTINGS_MODULE": "agency.settings"}
        )
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        tables = {}
        for name in names or BENCHES:
            module = __import__(f"bench.{name}", fromlist=["run"])
            tables[name] = module.run(*map(int, given))
        if set(SUMMARY) <= set(tables):
            from bench import summary

            summary.show(tables[name] for name in SUMMARY)


if __name__ == "__main__":
    main(sys.argv[1:])
