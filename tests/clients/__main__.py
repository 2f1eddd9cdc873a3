"""`make test-clients`: stories of the published npm clients with a real web server.

A worker calls webhooks.
Runs beside the servers that the environment names (`python -m
agency.devtools.embedded`).
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import django

from agency.devtools.embedded import SIGNALS, ignore_signals
from agency.devtools.embedded.home import free_port
from agency.devtools.supervisor import Supervisor, read_procfile
from agency.ops.healthcheck import probe_health

HERE = Path(__file__).parent
VERSIONS = ("3102", "3476", "5018")
DEFINITIONS = 2 * len(VERSIONS) + 2
SECONDS_TO_START, SECONDS_OF_A_FILE = 60, 240


def main() -> int:
    """The exit code of node's test runner."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port(Path(folder) / "port")
        os.environ |= {
            "PORT": str(port),
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
            "ALLOWED_HOSTS": "127.0.0.1",
            "LOG_LEVEL": "WARNING",
            "OUTGOING_ALLOW_LOOPBACK": "1",
            "WEBHOOK_REQUIRE_HTTPS": "0",
            "NETWORK_ALIASES": "sovrin-staging=local",
            "DJANGO_SETTINGS_MODULE": "agency.settings",
            "PATH": os.pathsep.join(
                (str(Path(sys.executable).parent), os.environ["PATH"])
            ),
        }
        supervisor = Supervisor(mark=folder)
        with services(supervisor, port):
            supervisor.environment["AGENCY_URL"] = os.environ["PUBLIC_URL"]
            supervisor.environment["AGENCY_ORGANIZATIONS"] = json.dumps(
                make_organizations()
            )
            return supervisor.run(stories())


@contextlib.contextmanager
def services(supervisor: Supervisor, port: int) -> Iterator[None]:
    """Run the Procfile's web server and webhook worker on a migrated database.

    They end with the block.
    """
    code, output = supervisor.capture(read_procfile()["migrate"])
    if code:
        sys.exit(output)
    supervisor.start("web", read_procfile()["web"])
    supervisor.start("deliver", read_procfile()["deliver"])
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while not probe_health(port, os.environ["PUBLIC_URL"]):
            supervisor.raise_if_ended()
            if time.monotonic() > deadline:
                sys.exit(
                    f"The web server did not answer within {SECONDS_TO_START} seconds."
                )
            time.sleep(0.1)
        yield
    finally:
        with ignore_signals():
            supervisor.stop()


def make_organizations() -> dict[str, dict[str, str]]:
    """Return the keys of an organization for each client.

    Create keys of definitions for all.
    """
    django.setup()
    from organizations.provisioning import create_organization
    from tests.support.keys import definition_like
    from wallets import key_pool

    with mock.patch("wallets.anoncreds.create_definition", definition_like):
        for _ in range(DEFINITIONS):
            key_pool.make_key(2)
    made = {version: create_organization(version) for version in VERSIONS}
    return {
        version: {
            "accessToken": one.access_token,
            "subscriptionKey": one.subscription_key,
            "providerKey": one.provider_key,
        }
        for version, one in made.items()
    }


def stories() -> str:
    """The command that runs them."""
    files = " ".join(str(file) for file in sorted(HERE.glob("*.test.mjs")))
    return (
        "node --test --test-reporter=spec "
        f"--test-timeout={SECONDS_OF_A_FILE * 1000} {files}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
