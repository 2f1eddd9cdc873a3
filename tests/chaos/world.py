"""Create organizations for stories in the product's environment. Prints them as JSON.

python -m tests.chaos.world URL    URL of the receivers: each responds below its name
"""

import json
import subprocess
import sys

import django

KINDS = (
    "steady", "failing", "throttling", "gone", "moved", "hanging", "mute", "closing",
    "huge",
)  # fmt: skip


def make_world(product, url):
    """Return the organizations, made beside the product's processes."""
    given = {"DJANGO_SETTINGS_MODULE": "agency.settings"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.chaos.world", url],
        env=product.supervisor.environment | given,
        check=True,
        capture_output=True,
    )
    return json.loads(ran.stdout)


def main(url):
    django.setup()
    from tests.support import keys

    with keys.stored_keys():
        faber, acme = (
            organization("Faber", url, KINDS),
            organization("Acme", url, KINDS[:2]),
        )
    print(json.dumps({"Faber": faber, "Acme": acme}))


def organization(name, url, kinds):
    """Its id, headers, a definition, and webhook ids by how their receivers behave."""
    from tests.support.people import Organization
    from webhooks.events.types import Type

    made = Organization(name)
    webhooks = {}
    for kind in kinds:
        body = {"url": f"{url}/{name}/{kind}", "type": "Zapier"}
        body |= {
            "messageTypes": [str(one) for one in Type],
            "retryUnconfirmed": kind != "mute",
        }
        webhooks[kind] = made.post("/webhooks", body)["id"]
    return {
        "tenant": str(made.tenant.pk),
        "headers": made.headers,
        "definition": made.defines("name", "degree"),
        "webhooks": webhooks,
    }


if __name__ == "__main__":
    main(sys.argv[1])
