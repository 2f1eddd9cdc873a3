"""The policy that somebody builds: from the fields of the page, from JSON, and back.

A draft may be incomplete. What the builder has no field for is kept as it is.
"""

import json
import re
from dataclasses import dataclass, field

from django.http import QueryDict

from agency.studio.curl import Body, Json
from core.text import bounded_json
from verifications.proofs.policy import (
    OR_TWIN,
    PROVEN_BY,
    REVOCATION_REQUIREMENT,
    Policy,
    PolicyItem,
    Restriction,
)

MAX_DRAFT_ITEMS = 40
MAX_DRAFT_NAMES = 20  # of an item
MAX_ALTERNATIVES = 8  # of an item
MAX_FIELDS = 900  # of the page
SHOW = "show"
KINDS = {
    SHOW: "Show the value",
    ">=": "Only prove: at least",
    ">": "Only prove: more than",
    "<=": "Only prove: at most",
    "<": "Only prove: less than",
    "==": "Only prove: exactly",
    "": "Leave it out",
}
VALID_NOW: Body = {"validNow": True}
GRACE = "graceSeconds"
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
PLACE = re.compile(r"[0-9]{1,3}")  # of what a button of the page changes
LAST_NUMBER = re.compile(r"^((?:[0-9]+\.){0,2})([0-9]+)")
# The members of a restriction by the names of their fields.
MEMBERS = {
    "definition": "credentialDefinitionId",
    "schema": "schemaId",
    "issuer": "issuerDid",
    "schema_name": "schemaName",
    "schema_version": "schemaVersion",
    "schema_issuer": "schemaIssuerDid",
    "vct": "vct",
    "anchor": "trustAnchorId",
}
LABELS = {
    "definition": "definition",
    "schema": "schema",
    "issuer": "issuer",
    "schema_name": "schema name",
    "schema_version": "schema version",
    "schema_issuer": "schema issuer",
    "vct": "type",
    "anchor": "trust anchor",
}
VALUE_PARTS = ("attribute", "value")  # of `value`, the value that is required
PROVEN = "proven_by"  # names, with commas between them
TWIN = "twin"  # "on" if the twin of the definition is allowed too
PARTS = (*MEMBERS, *VALUE_PARTS, PROVEN, TWIN)
OR_ITS_TWIN = "definition (or its twin)"
WITHOUT_FIELD = (REVOCATION_REQUIREMENT, "allowText")  # members of an item


@dataclass
class DraftItem:
    """One item. any_of: for each alternative, the texts of its PARTS.

    more: members of the API's item that have no field. path: in the body.
    """

    kind: str = SHOW
    called: str = ""
    number: str = ""
    names: list[str] = field(default_factory=lambda: [""])
    any_of: list[dict[str, str]] = field(default_factory=list)
    more: Body = field(default_factory=dict)
    path: str = ""

    @property
    def more_text(self) -> str:
        return json.dumps(self.more) if self.more else ""

    @property
    def given_names(self) -> list[str]:
        return [name for name in self.names if name.strip()]

    @property
    def is_blank(self) -> bool:
        return not self.kind or not (self.given_names or self.called.strip())

    def body(self) -> Body:
        names, called = self.given_names, self.called
        if self.kind == SHOW:
            body: Body = {"policyName": called or ", ".join(names)}
            if names:
                body["attributeNames"] = names
        else:
            name = ", ".join(names)
            is_number = WHOLE_NUMBER.fullmatch(self.number.strip())
            body = {
                "policyName": called or f"{name} {self.kind} {self.number}",
                "attributeName": name,
                "predicateType": self.kind,
                "predicateValue": int(self.number) if is_number else self.number,
            }
        allowed = [restriction_of(parts) for parts in self.any_of]
        if any(allowed):
            body["restrictions"] = [one for one in allowed if one]
        return body | self.more


@dataclass
class Draft:
    """requirement: of the policy, about revocation; {} for none."""

    name: str = ""
    version: str = "1.0"
    requirement: Body = field(default_factory=lambda: dict(VALID_NOW))
    items: list[DraftItem] = field(default_factory=lambda: [DraftItem()])

    @property
    def grace(self) -> Json:
        """The graceSeconds; "" for none."""
        return self.requirement.get(GRACE, "")

    @property
    def valid_now(self) -> bool:
        return bool(self.requirement) and not self.other_requirement

    @property
    def other_requirement(self) -> str:
        """As JSON, if it is more than the page has fields for."""
        named = {name: one for name, one in self.requirement.items() if name != GRACE}
        is_plain = named == VALID_NOW or not self.requirement
        return "" if is_plain else json.dumps(self.requirement)

    def body(self) -> Body:
        """The policy as JSON. Sets the path of each item in it."""
        parts: dict[str, list[Body]] = {"attributes": [], "predicates": []}
        for item in self.items:
            member = "attributes" if item.kind == SHOW else "predicates"
            item.path = "" if item.is_blank else f"{member}[{len(parts[member])}]"
            if item.path:
                parts[member].append(item.body())
        body: Body = {"name": self.name, "version": self.version, **parts}
        if self.requirement:
            body[REVOCATION_REQUIREMENT] = self.requirement
        return body

    @property
    def field_count(self) -> int:
        return sum(
            5 + len(item.names) + len(PARTS) * len(item.any_of) for item in self.items
        )

    @property
    def fits_page(self) -> bool:
        """Whether the builder shows all of it."""
        return (
            self.field_count <= MAX_FIELDS
            and len(self.items) <= MAX_DRAFT_ITEMS
            and all(len(item.names) <= MAX_DRAFT_NAMES for item in self.items)
            and all(len(item.any_of) <= MAX_ALTERNATIVES for item in self.items)
        )

    def edit(self, change: str) -> None:
        """Apply a button of the page, such as `add_name:2` or `remove_any:2:0`."""
        name, *places = change.split(":")
        numbers = [int(place) for place in places if PLACE.fullmatch(place)]
        is_full = self.field_count + len(PARTS) > MAX_FIELDS
        if name.startswith("add_") and is_full:
            return
        if name == "add_item":
            self.items = [*self.items, DraftItem()][:MAX_DRAFT_ITEMS]
        elif numbers and numbers[0] < len(self.items):
            item = self.items[numbers[0]]
            if name == "remove_item":
                self.items.remove(item)
            elif name == "add_name":
                item.names = [*item.names, ""][:MAX_DRAFT_NAMES]
            elif name == "add_any":
                item.any_of = [*item.any_of, {}][:MAX_ALTERNATIVES]
            elif name == "remove_any" and numbers[1:]:
                del item.any_of[numbers[1] : numbers[1] + 1]


def read_draft(given: QueryDict) -> Draft:
    """The draft in the fields of the page."""
    items = [
        read_item(given, f"item_{number}_")
        for number in range(MAX_DRAFT_ITEMS)
        if f"item_{number}_kind" in given
    ]
    requirement = read_object(given.get("requirement", ""))
    if not requirement and "valid_now" in given:
        requirement = dict(VALID_NOW)
        if grace := given.get("grace", "").strip():
            requirement[GRACE] = int(grace) if WHOLE_NUMBER.fullmatch(grace) else grace
    return Draft(given.get("name", ""), given.get("version", ""), requirement, items)


def read_item(given: QueryDict, prefix: str) -> DraftItem:
    kind = given.get(f"{prefix}kind", "")
    return DraftItem(
        kind=kind if kind in KINDS else "",
        called=given.get(f"{prefix}called", ""),
        number=given.get(f"{prefix}number", ""),
        names=[
            given.get(f"{prefix}name_{number}", "")
            for number in range(MAX_DRAFT_NAMES)
            if f"{prefix}name_{number}" in given
        ],
        any_of=[
            {part: given.get(f"{prefix}any_{number}_{part}", "") for part in PARTS}
            for number in range(MAX_ALTERNATIVES)
            if f"{prefix}any_{number}_definition" in given
        ],
        more=read_object(given.get(f"{prefix}more", "")),
    )


def read_object(text: str) -> Body:
    """The JSON object in a hidden field, or {}."""
    try:
        found = bounded_json.loads(text) if text else {}
    except bounded_json.BadJSON:
        return {}
    return found if isinstance(found, dict) else {}


def restriction_of(parts: dict[str, str]) -> Body:
    """The restriction of an alternative; {} if no field is filled in."""
    found: Body = {
        member: parts[name]
        for name, member in MEMBERS.items()
        if parts.get(name, "").strip()
    }
    if parts.get("attribute", "").strip():
        found["value"] = {
            "attributeName": parts["attribute"],
            "attributeValue": parts.get("value", ""),
        }
    names = [one.strip() for one in parts.get(PROVEN, "").split(",")]
    if given := [one for one in names if one]:
        found[PROVEN_BY] = given
    return found | ({OR_TWIN: True} if parts.get(TWIN) else {})


def restriction_words(restriction: Restriction) -> list[tuple[str, str]]:
    """`(what, which)` for each part of a restriction. A required value is not shown."""
    labels = LABELS | ({"definition": OR_ITS_TWIN} if restriction.or_twin else {})
    found = [
        (labels[name], restriction.facts[member])
        for name, member in MEMBERS.items()
        if member in restriction.facts
    ]
    if restriction.value:
        found.append(("a required value of", restriction.value.attribute_name))
    if restriction.proven_by:
        found.append(("proven by", ", ".join(restriction.proven_by)))
    return found


def draft_of(policy: Policy) -> Draft:
    return Draft(
        policy.name,
        policy.version,
        {**policy.requirement.to_json()},
        [draft_item(item) for item in policy.items],
    )


def draft_item(item: PolicyItem) -> DraftItem:
    more = item.to_json()
    return DraftItem(
        kind=item.predicate_type or SHOW,
        called=item.policy_name,
        number=str(item.threshold) if item.is_predicate else "",
        names=list(item.attribute_names),
        any_of=[parts_of(one) for one in item.restrictions],
        more={name: more[name] for name in WITHOUT_FIELD if name in more},
    )


def parts_of(restriction: Restriction) -> dict[str, str]:
    facts, value = restriction.facts, restriction.value
    found = {name: facts.get(member, "") for name, member in MEMBERS.items()}
    return found | {
        "attribute": value.attribute_name if value else "",
        "value": value.text if value else "",
        PROVEN: ", ".join(restriction.proven_by),
        TWIN: "on" if restriction.or_twin else "",
    }


def next_version(version: str) -> str:
    """1.1 after 1.0, 2 after 1, 1.0.1 after 1.0.0-beta."""
    found = LAST_NUMBER.match(version)
    return f"{found[1]}{int(found[2]) + 1}" if found else "1.0"
