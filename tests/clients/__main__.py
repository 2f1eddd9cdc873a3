"""`make test-clients`: stories of clients with a real web server.

The clients are those that were published on npm, and two that generators make of the
OpenAPI document. A worker calls webhooks.
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
from tests.clients.generators import make_clients
from tests.support.processes import processes

HERE = Path(__file__).parent
VERSIONS = ("3102", "3476", "5018")
GENERATED = ("python", "typescript")
DEFINITIONS = 2 * len(VERSIONS) + 2 + len(GENERATED)
SECONDS_OF_A_FILE = 240


def main() -> int:
    """0 when all stories pass."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, processes(Path(folder)) as product:
        assert product.manage("migrate --verbosity 0") == 0
        product.start_all("deliver")
        environment = product.supervisor.environment
        os.environ |= environment | {"DJANGO_SETTINGS_MODULE": "agency.settings"}
        environment["AGENCY_URL"] = product.url
        environment["AGENCY_ORGANIZATIONS"] = json.dumps(make_organizations())
        generated = Path(folder, "generated")
        make_clients(generated, environment)
        failed = product.supervisor.run(f"python {generated / 'story.py'}")
        return product.supervisor.run(stories(generated)) or failed


def make_organizations() -> dict[str, dict[str, str]]:
    """Return the keys of an organization for each client.

    Create keys of definitions for all.
    """
    django.setup()
    from tenants.lifecycle.provisioning import create_organization
    from tenants.models import Tenant
    from wallets import key_generator

    for _ in range(DEFINITIONS):
        key_generator.make_key()
    made = {name: create_organization(name) for name in (*VERSIONS, *GENERATED)}
    # A choice of which the client notices nothing.
    chosen = Tenant.objects.filter(pk=made["3102"].tenant.pk)
    chosen.update(invitation_protocol=Tenant.InvitationProtocol.BOTH)
    return {
        name: {
            "accessToken": one.access_token,
            "subscriptionKey": one.subscription_key,
            "providerKey": one.provider_key,
        }
        for name, one in made.items()
    }


def stories(generated: Path) -> str:
    """The command that runs those that node runs."""
    compiled = generated / "built" / "story.test.js"
    files = " ".join(map(str, [*sorted(HERE.glob("*.test.mjs")), compiled]))
    return (
        "node --test --test-reporter=spec "
        f"--test-timeout={SECONDS_OF_A_FILE * 1000} {files}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
