"""The form of a new definition: a schema, made of rows or given, and its options."""

import csv
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.forms import BoundField
from django.http import QueryDict

from agency.studio.api_forms import read_parameters
from agency.studio.curl import Json
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import choice_field, focus_field
from credentials.api.serializers import (
    CredentialDefinitionFromSchemaParameters,
    CredentialDefinitionParameters,
)
from credentials.models.definition import BOOLEAN, DATE, INTEGER
from verifications.wording import is_validity
from wallets.anoncreds.objects import SchemaBody

MAX_ROWS = 90  # of attributes
FIRST_ROWS = 3
MORE_ROWS = 3
MAX_HEADER = 20_000  # characters
BYTES_OF_PLACE = 256  # of a tails file
TYPES = {"": "Text", INTEGER: "Number", DATE: "Date", BOOLEAN: "Yes or no"}
EXAMPLES = ("first name", "last name", "member number")
VALID_UNTIL = "valid until"
# What attributes are called that name a person, best first, as normalise_name()
# spells them, without signs between words.
NAMES_OF_PEOPLE = (
    "fullname", "name", "holder", "holdername", "membername", "studentname",
    "vorundnachname", "vornamenachname", "nomcomplet", "nometprénom", "nom",
    "nombrecompleto", "nombreyapellidos", "nombre", "nomecompleto", "nome",
    "lastname", "familyname", "surname", "nachname", "familienname", "apellidos",
    "cognome",
)  # fmt: skip
PROPOSED, NO_NAME = "", "none"
COST_OF_REVOCATION = (
    "Each wallet then downloads a file, of {kilobytes} kB at first, "
    "and proofs are longer."
)
OF_NEW_SCHEMA = ("name", "version", "valid_until", "header", "header_file", "rows")


class AttributeRow(NamedTuple):
    """The field of the type of an attribute, and its name: a field, or a text."""

    type: BoundField
    name: BoundField | None
    given_name: str


class DefinitionForm(OnceForm):
    """Rows `attribute_0`, `type_0`, …; of a given schema only the second of each."""

    name = forms.CharField(
        label="Name that holders read",
        max_length=64,
        widget=forms.TextInput(attrs={"placeholder": "Membership card"}),
    )
    version = forms.CharField(
        label="Version", max_length=64, initial="1.0", required=False
    )
    valid_until = forms.BooleanField(
        label="It ends on a day, which you choose for each card: adds “valid until”",
        required=False,
    )
    support_revocation = forms.BooleanField(
        label="I can cancel a card later, for example when a member leaves",
        required=False,
    )
    recipient = forms.ChoiceField(
        label="Attribute that names the person",
        required=False,
        help_text="Your lists begin with it. Owners and operators see the names of "
        "people, unless the settings of the organization show them to all members.",
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
        self,
        data: QueryDict | None = None,
        schema: SchemaBody | None = None,
        initial: dict[str, Any] | None = None,
    ) -> None:
        """schema: of the network, as AnonCreds writes it, instead of rows."""
        super().__init__(data, initial=initial)
        self.schema = schema
        count = len(schema["attrNames"]) if schema else read_count(data or self.initial)
        self.initial["rows"] = count
        size = settings.REVOCATION_FIRST_REGISTRY_SIZE * BYTES_OF_PLACE
        self.fields["support_revocation"].help_text = COST_OF_REVOCATION.format(
            kilobytes=max(1, round(size / 1024))
        )
        self.numbers = range(count)
        for number in self.numbers:
            if not schema:
                self.fields[f"attribute_{number}"] = name_field(number)
            of_what = schema["attrNames"][number] if schema else number + 1
            self.fields[f"type_{number}"] = forms.ChoiceField(
                label=f"Type of attribute {of_what}",
                choices=list(TYPES.items()),
                required=False,
            )
        attributes = schema["attrNames"] if schema else []
        choice_field(self, "recipient").choices = [
            (PROPOSED, "The one that is called a name, if there is one"),
            *(
                (
                    str(number),
                    attributes[number] if schema else f"Attribute {number + 1}",
                )
                for number in self.numbers
            ),
            (NO_NAME, "None"),
        ]
        for name in OF_NEW_SCHEMA if schema else ():
            del self.fields[name]
        if not schema:
            focus_field(self, "name")

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
    def attribute_rows(self) -> list[AttributeRow]:
        names = self.schema["attrNames"] if self.schema else []
        return [
            AttributeRow(
                type=self[f"type_{number}"],
                name=None if names else self[f"attribute_{number}"],
                given_name=names[number] if names else "",
            )
            for number in self.numbers
        ]

    @property
    def has_more_errors(self) -> bool:
        """Whether an error stands at a field that is folded at first."""
        return bool(self.errors.keys() & {"version", "tag"})

    def clean(self) -> None:
        super().clean()
        if not self.errors:
            self.parameters = self._read_parameters()

    def _read_parameters(self) -> dict[str, Any]:
        """What the API reads of the same choices. Its errors are added to the form."""
        cleaned = self.cleaned_data
        rows = self._read_rows()
        body: dict[str, Json] = {
            "supportRevocation": cleaned["support_revocation"],
            "tag": cleaned["tag"] or None,
            "claims": {name: {"type": kind} for name, kind in rows if kind},
            "recipientAttribute": self._read_recipient([name for name, _ in rows]),
        }
        if self.schema:
            return read_parameters(self, CredentialDefinitionParameters, body)
        if all(is_validity(name) for name, _ in rows):
            self.add_error(None, "Give the name of at least one attribute.")
            return {}
        body |= {"name": cleaned["name"], "version": cleaned["version"] or "1.0"}
        body["attributes"] = [name for name, _ in rows]
        return read_parameters(self, CredentialDefinitionFromSchemaParameters, body)

    def _read_recipient(self, names: list[str]) -> str:
        """The attribute that is chosen as the person's name, or proposed; "" if none."""
        chosen = self.cleaned_data["recipient"]
        if chosen == PROPOSED:
            return propose_recipient(names)
        if chosen == NO_NAME:
            return ""
        number = int(chosen)
        if self.schema:
            return self.schema["attrNames"][number]
        name: str = self.cleaned_data[f"attribute_{number}"]
        if name not in names:
            self.add_error("recipient", "This attribute has no name. Choose another.")
        return name

    def _read_rows(self) -> list[tuple[str, str]]:
        """`(name, type)` of each attribute, with the end that was ticked as the last."""
        cleaned = self.cleaned_data
        names = self.schema["attrNames"] if self.schema else None
        rows = [
            (
                names[number] if names else cleaned[f"attribute_{number}"],
                cleaned[f"type_{number}"],
            )
            for number in self.numbers
        ]
        rows = [(name, kind) for name, kind in rows if name]
        if cleaned.get("valid_until"):
            rows = [row for row in rows if not is_validity(row[0])]
            rows.append((VALID_UNTIL, DATE))
        return rows


def propose_recipient(names: list[str]) -> str:
    """The attribute whose label is a word for a name of a person, or ""."""
    words = {re.sub(r"[\W_]", "", name).casefold(): name for name in reversed(names)}
    return next((words[word] for word in NAMES_OF_PEOPLE if word in words), "")


def name_field(number: int) -> forms.CharField:
    example = EXAMPLES[number] if number < len(EXAMPLES) else ""
    return forms.CharField(
        label=f"Attribute {number + 1}",
        max_length=256,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": example}),
    )


def read_count(given: Mapping[str, Any]) -> int:
    """How many rows of attributes a form has: as it says, within bounds."""
    try:
        count = int(given.get("rows") or FIRST_ROWS)
    except ValueError:
        count = FIRST_ROWS
    return max(1, min(count, MAX_ROWS))


def read_header(text: str, uploaded: UploadedFile | None) -> list[str]:
    """The names in the first line of a CSV file, or of a text in its place."""
    if uploaded:
        text = uploaded.read(MAX_HEADER).decode("utf-8-sig", "replace")
    [line] = text[:MAX_HEADER].strip().splitlines()[:1] or [""]
    delimiter = max(",;\t", key=line.count)
    [cells] = csv.reader([line], delimiter=delimiter)
    return [name for cell in cells if (name := cell.strip())]
