"""The form of a new definition: a schema, made of rows or given, and its options."""

import csv
from typing import Any, Self

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from agency.studio.api_forms import read_parameters
from agency.studio.form_tokens import OnceForm
from credentials.api.serializers import (
    CredentialDefinitionFromSchemaParameters,
    CredentialDefinitionParameters,
)

MAX_ROWS = 90  # of attributes
FIRST_ROWS = 3
MORE_ROWS = 3
MAX_HEADER = 20_000  # characters
BYTES_OF_PLACE = 256  # of a tails file
REVOCATION = (
    "Then you can take a credential back, when a member leaves for example. Without it, "
    "one that you issued is valid for ever; it cannot be added later. It costs a "
    "registry on the network, and another one whenever the last is nearly full; a file "
    "of {kilobytes} kB at first, which each wallet downloads once; and longer proofs."
)


class DefinitionForm(OnceForm):
    """Rows `attribute_0`, `number_0`, …; of a given schema only the second of each."""

    name = forms.CharField(
        label="Name",
        max_length=64,
        help_text="What holders get, for example “Degree”.",
    )
    version = forms.CharField(label="Version", max_length=64, initial="1.0")
    support_revocation = forms.BooleanField(
        label="Credentials can be revoked", required=False
    )
    tag = forms.CharField(
        label="Tag",
        max_length=64,
        required=False,
        help_text="Tells several definitions of one schema apart.",
    )
    header = forms.CharField(
        label="Names of the columns",
        max_length=MAX_HEADER,
        required=False,
        help_text="The first line of a CSV file, for example “name,age”.",
    )
    header_file = forms.FileField(label="Or the CSV file", required=False)
    rows = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(
        self, data: Any = None, schema: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """schema: of the network, as AnonCreds writes it, instead of rows."""
        initial = options.setdefault("initial", {})
        super().__init__(data, **options)
        self.schema = schema
        count = len(schema["attrNames"]) if schema else read_count(data or initial)
        self.fields["support_revocation"].help_text = cost_of_revocation()
        self.initial["rows"] = count
        self.numbers = range(count)
        for number in self.numbers:
            self.fields[f"attribute_{number}"] = forms.CharField(
                label=f"Attribute {number + 1}", max_length=256, required=False
            )
            label = schema["attrNames"][number] if schema else "A whole number"
            self.fields[f"number_{number}"] = forms.BooleanField(
                label=label, required=False
            )
        if schema:
            for name in ("name", "version", "header", "header_file", "rows"):
                del self.fields[name]
            for number in self.numbers:
                del self.fields[f"attribute_{number}"]

    @classmethod
    def with_rows(cls, given: QueryDict, names: list[str] | None = None) -> Self:
        """The form as it was sent, with these attributes or else with more rows."""
        initial = {name: given[name] for name in given if name != "form_token"}
        count = read_count(given) + MORE_ROWS
        if names is not None:
            count = len(names)
            initial |= {f"attribute_{n}": name for n, name in enumerate(names)}
        return cls(initial=initial | {"rows": min(count, MAX_ROWS)})

    @property
    def attribute_rows(self) -> list[list[forms.BoundField]]:
        """The fields of each row, for the template."""
        kinds = ("number",) if self.schema else ("attribute", "number")
        return [
            [self[f"{kind}_{number}"] for kind in kinds] for number in self.numbers
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            self.parameters = self._read_parameters(cleaned)
        return cleaned

    def _read_parameters(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """What the API reads of the same choices."""
        names = self.schema["attrNames"] if self.schema else None
        named = [
            (names[number] if names else cleaned[f"attribute_{number}"], number)
            for number in self.numbers
        ]
        named = [(name, number) for name, number in named if name]
        body: dict[str, Any] = {
            "supportRevocation": cleaned["support_revocation"],
            "tag": cleaned["tag"] or None,
            "claims": {
                name: {"type": "integer"}
                for name, number in named
                if cleaned[f"number_{number}"]
            },
        }
        if self.schema:
            return read_parameters(self, CredentialDefinitionParameters, body)
        if not named:
            self.add_error(None, "Give the name of at least one attribute.")
            return {}
        body |= {"name": cleaned["name"], "version": cleaned["version"]}
        body["attributes"] = [name for name, _ in named]
        return read_parameters(self, CredentialDefinitionFromSchemaParameters, body)


def read_count(given: Any) -> int:
    """How many rows of attributes a form has: as it says, within bounds."""
    try:
        count = int(given.get("rows") or FIRST_ROWS)
    except ValueError:
        count = FIRST_ROWS
    return max(1, min(count, MAX_ROWS))


def cost_of_revocation() -> str:
    size = settings.REVOCATION_FIRST_REGISTRY_SIZE * BYTES_OF_PLACE
    return REVOCATION.format(kilobytes=max(1, round(size / 1024)))


def read_header(text: str, uploaded: UploadedFile | None) -> list[str]:
    """The names in the first line of a CSV file, or of a text in its place."""
    if uploaded:
        text = uploaded.read(MAX_HEADER).decode("utf-8-sig", "replace")
    [line] = text.strip().splitlines()[:1] or [""]
    delimiter = max(",;\t", key=line.count)
    [cells] = csv.reader([line], delimiter=delimiter)
    return [name for cell in cells if (name := cell.strip())]
