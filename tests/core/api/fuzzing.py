"""The configuration of schemathesis: an organization's keys, ids for parameters."""

import json
import re

from core.api.dialects import LITERAL_HEADER
from credentials.models import RevocationRegistry
from tests.support.world import PROVIDER, WALLET, caller

AREAS = {  # whose ids a path takes -> which paths
    WALLET: f".*{re.escape(WALLET)}",
    PROVIDER: PROVIDER,
    "": f"(?!{PROVIDER}|.*{re.escape(WALLET)})",
}
# Their bodies are those of createVerificationPolicy, of which all cases are tried.
OF_KNOWN_BODIES = [
    "sendVerificationFromParameters",
    "replaceVerificationFromParameters",
]
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
HITS = 0.8  # of the ids are ones that exist


class Known:
    """The ids of a world, for one of the three organizations that calls are made as."""

    def __init__(self, world):
        self.organization = world.faber
        registry = RevocationRegistry.objects.get(tenant=world.faber.tenant)
        public = (world.definition["schemaId"], world.definition["definitionId"])
        self.ids = world.api_ids() | {"objectId": (*public, registry.registry_id)}

    def ids_in(self, area):
        ids = self.ids | self.ids.get(area, {})
        return {
            name: value for name, value in ids.items() if not isinstance(value, dict)
        }


def configuration(*rules):
    """Return TOML. rules: (known, known of another, pattern of methods).

    A pattern may look ahead to the path.

    What matches is called with the keys of the first, and with ids of both. An
    operation has one rule, in one pattern: schemathesis takes several conditions as
    alternatives.
    """
    dictionaries, operations = {}, []
    for number, (world, other, method) in enumerate(rules):
        for area, path in AREAS.items():
            theirs = other.ids_in(area)
            known = {name: as_list(one) for name, one in world.ids_in(area).items()}
            words = {
                f"{number}{area}{name}": (name, one) for name, one in known.items()
            }
            operations.append(
                {
                    "include-name-regex": f"^{method} {path}",
                    "headers": described(caller(world.organization, area).headers),
                    "parameters": places(
                        {key: name for key, (name, _) in words.items()}
                    ),
                }
            )
            for key, (name, values) in words.items():
                dictionaries[key] = {
                    "values": [*values, *as_list(theirs[name]), UNKNOWN]
                }
    twins = {"include-operation-id": OF_KNOWN_BODIES}
    operations.append(twins | {"phases": {"coverage": {"enabled": False}}})
    phases = {
        # What it learns from the sentences of errors, it takes for rules of the schema.
        "fuzzing": {"error-feedback": {"enabled": False}},
        # One place refuses all that a path has not.
        "coverage": {"unexpected-methods": ["TRACE"]},
    }
    parts = {"dictionaries": dictionaries, "operations": operations, "phases": phases}
    return "\n".join(f"{name} = {toml(value)}" for name, value in parts.items())


def described(headers):
    """The keys in the headers of the document, whose shapes are answered then."""
    token, subscription_key = headers.values()
    return {"Authorization": token, LITERAL_HEADER: subscription_key}


def places(names):
    """Where each dictionary is used: as a path parameter, in a query and in a body."""
    return {
        f"{place}.{name}": {"dictionary": key, "probability": HITS}
        for key, name in names.items()
        for place in ("path", "query", "body")
    }


def as_list(value):
    return [value] if isinstance(value, str) else list(value)


def toml(value):
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)
