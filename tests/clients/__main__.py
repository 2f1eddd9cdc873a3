"""`make test-clients`: stories of the published npm clients with a real web server.

A worker calls webhooks.
Runs beside the servers that the environment names (`python -m
agency.devtools.embedded`).
"""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import django

from agency.devtools.embedded import SIGNALS
from tests.support.processes import processes

HERE = Path(__file__).parent
VERSIONS = ("3102", "3476", "5018")
DEFINITIONS = 2 * len(VERSIONS) + 2
SECONDS_OF_A_FILE = 240


def main() -> int:
    """The exit code of node's test runner."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, processes(Path(folder)) as product:
        assert product.manage("migrate --verbosity 0") == 0
        product.start_all("deliver")
        environment = product.supervisor.environment
        os.environ |= environment | {"DJANGO_SETTINGS_MODULE": "agency.settings"}
        environment["AGENCY_URL"] = product.url
        environment["AGENCY_ORGANIZATIONS"] = json.dumps(make_organizations())
        return product.supervisor.run(stories())


def make_organizations() -> dict[str, dict[str, str]]:
    """Return the keys of an organization for each client.

    Create keys of definitions for all.
    """
    django.setup()
    from organizations.provisioning import create_organization
    from tenants.models import Tenant
    from wallets import key_generator

    for _ in range(DEFINITIONS):
        key_generator.make_key()
    made = {version: create_organization(version) for version in VERSIONS}
    # A choice of which the client notices nothing.
    chosen = Tenant.objects.filter(pk=made["3102"].tenant.pk)
    chosen.update(invitation_protocol=Tenant.InvitationProtocol.BOTH)
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
