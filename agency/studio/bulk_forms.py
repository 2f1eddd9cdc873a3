"""The form of a file of offers: the file, its columns and the options."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from agency.studio.form_tokens import OnceForm
from core.errors import AgencyError
from credentials.bulk import reading
from credentials.models import CredentialDefinition

OTHERS = {
    reading.CONNECTION: "Connection (its id)",
    reading.WALLET: "Hosted wallet (its id)",
    reading.REFERENCE: "Reference (no personal data)",
}


class Target(NamedTuple):
    """What a column of the file may be.

    name: an attribute, or one of OTHERS. chosen: the name of the column, or "".
    """

    field: str
    name: str
    label: str
    is_required: bool
    chosen: str


class BulkForm(OnceForm):
    """Fields `column_0`, … are the columns of the attributes, then of the recipients.

    They are read once the header of the file is known; where they were not sent, the
    column with the same name is taken.
    """

    file = forms.FileField(
        label="CSV file",
        help_text="At most 10 MB and 100,000 rows; the first line has the names of "
        "the columns.",
    )
    automatic_issuance = forms.BooleanField(
        label="Issue each as soon as its holder accepts", required=False, initial=True
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        files: MultiValueDict[str, UploadedFile] | None = None,
        *,
        definition: CredentialDefinition,
    ) -> None:
        super().__init__(data, files)
        self.definition = definition
        self.source: reading.CSVFile | None = None

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        if self.errors:
            return
        try:
            text = reading.decode_text(cleaned["file"].read())
            self.source = reading.CSVFile(text)
        except AgencyError as error:
            self.add_error("file", error.message)
            return
        missing = [
            target.label
            for target in self.targets
            if target.is_required and not target.chosen
        ]
        if missing:
            names = ", ".join(missing)
            self.add_error(None, f"Choose below in which column is: {names}.")

    @property
    def column_names(self) -> list[str]:
        return [name for name in self.source.columns if name] if self.source else []

    @cached_property
    def targets(self) -> list[Target]:
        attributes = self.definition.schema.attribute_names
        others = {
            name: label for name, label in OTHERS.items() if name not in attributes
        }
        labels = dict.fromkeys(attributes) | others
        return [
            Target(
                field=f"column_{number}",
                name=name,
                label=label or name,
                is_required=name not in others,
                chosen=self._choose_column(f"column_{number}", name, name in others),
            )
            for number, (name, label) in enumerate(labels.items())
        ]

    def _choose_column(self, field: str, name: str, is_exact: bool) -> str:
        """The column that was chosen, or the one with the same name.

        In any case of its letters, but for OTHERS (`is_exact`): an attribute or a
        column of people's names must not become a reference, which is in clear text.
        """
        known = self.column_names
        if field in self.data:
            return self.data[field] if self.data[field] in known else ""
        if name in known or is_exact:
            return name if name in known else ""
        return next((one for one in known if one.casefold() == name.casefold()), "")

    def source_rows(self) -> Iterator[reading.SourceRow]:
        """The rows of a valid form, as the API reads them."""
        assert self.source, "the form is valid"
        attributes = self.definition.schema.attribute_names
        columns = {
            target.name: self.source.columns.index(target.chosen)
            for target in self.targets
            if target.chosen
        }
        return self.source.read_rows(columns, attributes)
