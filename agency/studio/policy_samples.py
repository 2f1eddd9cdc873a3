"""Sample credentials on which a policy is tried, as fields of the page."""

from dataclasses import dataclass, field

from django.http import QueryDict
from django.utils import timezone

from agency.studio.curl import Body
from credentials.models import CredentialDefinition
from credentials.models.definition import BOOLEAN, DATE, INTEGER
from verifications.proofs.policy import Policy
from verifications.wording import as_day
from wallets.anoncreds import normalise_name

MAX_SAMPLES = 5  # on the page
MAX_SAMPLE_NAMES = 125  # what a schema has at most
# By the end of the name of an attribute without spaces; the first that fits counts.
EXAMPLES = {
    "firstname": "Ada",
    "givenname": "Ada",
    "lastname": "Lovelace",
    "familyname": "Lovelace",
    "surname": "Lovelace",
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "mailaddress": "ada@example.org",
}


@dataclass
class Sample:
    """A credential of a definition, or one that only has values."""

    definition_id: str = ""
    called: str = "A credential of any definition"
    is_revoked: bool = False
    values: list[tuple[str, str]] = field(default_factory=list)

    def body(self) -> Body:
        values: dict[str, str] = dict(self.values)
        found: Body = {"values": values, "revoked": self.is_revoked}
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
                called=given.get(f"{prefix}called", "")[:300],
                is_revoked=f"{prefix}revoked" in given,
                values=list(zip(names, values, strict=False)),
            )
        )
    return found


def add_sample(
    samples: list[Sample],
    definition: CredentialDefinition | None,
    policy: Policy | None,
) -> None:
    """Add one with the attributes of its definition, or else with those asked for.

    Each has an example as its value. policy: None if it is not valid yet.
    """
    if len(samples) >= MAX_SAMPLES:
        return
    if definition is None:
        kinds = {
            name: INTEGER if item.is_predicate else ""
            for item in (policy.items if policy else ())
            for name in item.attribute_names
        }
        values = [(name, example_value(name, kind)) for name, kind in kinds.items()]
        samples.append(Sample(values=values))
        return
    schema = definition.schema
    samples.append(
        Sample(
            definition_id=definition.definition_id,
            called=f"{schema.name} {schema.version}",
            values=[
                (name, example_value(name, definition.type_of(name)))
                for name in schema.attribute_names
            ],
        )
    )


def example_value(name: str, kind: str) -> str:
    """A value that an attribute might have, as it is signed: a day is a number.

    kind: its declared type, or "".
    """
    today = f"{timezone.now():%Y%m%d}"
    if kind == DATE or as_day(name, today):
        return today
    if kind == INTEGER:
        return "42"
    if kind == BOOLEAN:
        return "true"
    ends = normalise_name(name).replace("_", "").replace("-", "")
    found = (text for end, text in EXAMPLES.items() if ends.endswith(end))
    return next(found, name)
