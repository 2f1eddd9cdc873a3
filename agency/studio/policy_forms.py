"""The builder of policies: a row for each attribute, without JSON."""

import re
from typing import Any, Self

from django import forms
from django.http import QueryDict

from agency.core.errors import Invalid
from agency.studio.api_forms import read_parameters
from agency.studio.form_tokens import OnceForm
from credentials.models import CredentialDefinition
from verifications.api.serializers import VerificationPolicyParameters
from verifications.proofs import proof_policy

MAX_ROWS = 40  # Django reads 200 fields of a form
FIRST_ROWS = 3
MORE_ROWS = 3
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
LAST_NUMBER = re.compile(r"^((?:[0-9]+\.){0,2})([0-9]+)")
PARTS = ("attribute", "kind", "number", "definition")


class PolicyForm(OnceForm):
    """Rows of `attribute_0`, `kind_0`, `number_0` and `definition_0`."""

    name = forms.CharField(
        label="Name", max_length=200, help_text="Holders see it in your requests."
    )
    version = forms.CharField(label="Version", max_length=64, initial="1.0")
    valid_now = forms.BooleanField(
        label="Credentials must not be revoked when they are shown",
        required=False,
        initial=True,
        help_text="Credentials that cannot be revoked are always accepted.",
    )
    rows = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Any = None, **options: Any) -> None:
        initial = options.setdefault("initial", {})
        super().__init__(data, **options)
        count = read_count(data or initial)
        self.initial["rows"] = count
        self.numbers = range(count)
        for number in self.numbers:
            self._add_row(number)

    def _add_row(self, number: int) -> None:
        shown = number + 1
        self.fields[f"attribute_{number}"] = forms.CharField(
            label=f"Attribute {shown}", max_length=256, required=False
        )
        self.fields[f"kind_{number}"] = forms.ChoiceField(
            label="The holder must",
            choices=list(KINDS.items()),
            initial=SHOW,
            required=False,
        )
        self.fields[f"number_{number}"] = forms.IntegerField(
            label="Whole number", required=False
        )
        self.fields[f"definition_{number}"] = forms.CharField(
            label="Only of this definition",
            max_length=300,
            required=False,
            widget=forms.TextInput(
                attrs={"list": "definitions", "autocomplete": "off"}
            ),
        )

    @classmethod
    def with_rows(cls, given: QueryDict) -> Self:
        """The form as it was sent, with more rows."""
        initial = {name: given[name] for name in given if name != "form_token"}
        initial["valid_now"] = "valid_now" in given
        count = min(read_count(given) + MORE_ROWS, MAX_ROWS)
        return cls(initial=initial | {"rows": count})

    @classmethod
    def from_items(cls, rows: list[dict[str, Any]], **initial: Any) -> Self:
        """rows: by the parts of their fields' names."""
        filled = {
            f"{part}_{number}": value
            for number, row in enumerate(rows)
            for part, value in row.items()
        }
        return cls(initial=filled | initial | {"rows": len(rows)})

    @property
    def item_rows(self) -> list[list[forms.BoundField]]:
        """The fields of each row, for the template."""
        return [
            [self[f"{part}_{number}"] for part in PARTS] for number in self.numbers
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        body = {
            "name": cleaned.get("name"),
            "version": cleaned.get("version"),
            "attributes": [],
            "predicates": [],
        }
        for number in self.numbers:
            self._read_row(number, cleaned, body)
        if cleaned.get("valid_now"):
            body["revocationRequirement"] = {"validNow": True}
        if not self.errors:
            self.body = read_parameters(self, VerificationPolicyParameters, body)
        if not self.errors:
            self._check_policy()
        return cleaned

    def _read_row(
        self, number: int, cleaned: dict[str, Any], body: dict[str, Any]
    ) -> None:
        """Add the item of a row to the body of a policy."""
        name, kind, threshold, definition = (
            cleaned.get(f"{part}_{number}") for part in PARTS
        )
        if not name or not kind:
            return
        allowed = [{"credentialDefinitionId": definition}] if definition else None
        if kind == SHOW:
            item = {"policyName": name, "attributeNames": [name]}
            body["attributes"].append(item | {"restrictions": allowed})
            return
        if threshold is None:
            self.add_error(f"number_{number}", "Give a whole number to compare with.")
        body["predicates"].append(
            {
                "policyName": f"{name} {kind} {threshold}",
                "attributeName": name,
                "predicateType": kind,
                "predicateValue": threshold,
                "restrictions": allowed,
            }
        )

    def _check_policy(self) -> None:
        try:
            proof_policy.normalise(self.body)
        except Invalid as error:
            for member, sentences in (error.errors or {}).items():
                place = member if member in ("name", "version") else None
                self.add_error(place, sentences)


def read_count(given: Any) -> int:
    """How many rows a form has: as it says, within bounds."""
    try:
        count = int(given.get("rows") or FIRST_ROWS)
    except ValueError:
        count = FIRST_ROWS
    return max(1, min(count, MAX_ROWS))


def rows_of_definition(definition: CredentialDefinition) -> list[dict[str, Any]]:
    """A row for each attribute of a definition, only of this definition."""
    return [
        {
            "attribute": name,
            "kind": SHOW if number == 0 else "",
            "definition": definition.definition_id,
        }
        for number, name in enumerate(definition.schema.attribute_names[:MAX_ROWS])
    ]


def rows_of_policy(policy: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows that make this policy, or None if no rows do. policy: normalised."""
    rows: list[dict[str, Any]] = []
    for item in [*policy["attributes"], *policy["predicates"]]:
        is_predicate = "predicateType" in item
        names = [item["attributeName"]] if is_predicate else item["attributeNames"]
        allowed = item.get("restrictions", [{}])
        definition = allowed[0].get("credentialDefinitionId", "")
        whole = [{"credentialDefinitionId": definition}] if definition else [{}]
        if len(names) != 1 or allowed != whole or "revocationRequirement" in item:
            return None
        if item.get("allowText"):
            return None
        row = {"attribute": names[0], "definition": definition, "kind": SHOW}
        if is_predicate:
            row |= {"kind": item["predicateType"], "number": item["predicateValue"]}
        rows.append(row)
    requirement = policy.get("revocationRequirement", {"validNow": True})
    if len(rows) > MAX_ROWS or requirement != {"validNow": True}:
        return None
    return rows


def next_version(version: str) -> str:
    """1.1 after 1.0, 2 after 1, 1.0.1 after 1.0.0-beta."""
    found = LAST_NUMBER.match(version)
    return f"{found[1]}{int(found[2]) + 1}" if found else "1.0"
