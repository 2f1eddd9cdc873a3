"""Sample credentials on which a policy is tried, as fields of the page."""

from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from credentials.models import CredentialDefinition

MAX_SAMPLES = 5  # on the page
MAX_SAMPLE_NAMES = 125  # what a schema has at most
Json = dict[str, Any]


@dataclass
class Sample:
    """A credential of a definition, or one that only has values."""

    definition_id: str = ""
    called: str = "A credential of any definition"
    is_revoked: bool = False
    values: list[tuple[str, str]] = field(default_factory=list)

    def body(self) -> Json:
        found: Json = {"values": dict(self.values), "revoked": self.is_revoked}
        if self.definition_id:
            found["definitionId"] = self.definition_id
        return found


def read_samples(given: QueryDict) -> list[Sample]:
    """The samples in the fields of the page, up to MAX_SAMPLES."""
    found = []
    for number in range(MAX_SAMPLES):
        prefix = f"sample_{number}_"
        if f"{prefix}called" not in given:
            break
        names = given.getlist(f"{prefix}name")[:MAX_SAMPLE_NAMES]
        values = given.getlist(f"{prefix}value")[:MAX_SAMPLE_NAMES]
        found.append(
            Sample(
                definition_id=given.get(f"{prefix}definition", "")[:300],
                called=given[f"{prefix}called"][:300],
                is_revoked=f"{prefix}revoked" in given,
                values=list(zip(names, values, strict=False)),
            )
        )
    return found


def add_sample(
    samples: list[Sample], definition: CredentialDefinition | None, policy: Json
) -> None:
    """Add one with the attributes of its definition, or else with those asked for.

    policy: normalised.
    """
    if len(samples) >= MAX_SAMPLES:
        return
    if definition is None:
        shown = [
            name for one in policy["attributes"] for name in one["attributeNames"]
        ]
        compared = [one["attributeName"] for one in policy["predicates"]]
        names = dict.fromkeys([*shown, *compared])
        samples.append(Sample(values=[(name, "") for name in names]))
        return
    schema = definition.schema
    samples.append(
        Sample(
            definition_id=definition.definition_id,
            called=f"{schema.name} {schema.version}",
            values=[(name, "") for name in schema.attribute_names],
        )
    )
