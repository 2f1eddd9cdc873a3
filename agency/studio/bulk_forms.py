"""The form of a file of offers: the file, its columns and the options."""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from agency.studio.form_tokens import OnceForm
from core.errors import AgencyError
from core.text.mail_addresses import find_address
from credentials.bulk import reading, workbooks
from credentials.bulk.cells import DateForm, converter, guess_date_form
from credentials.models import CredentialDefinition
from credentials.models.definition import DATE
from credentials.models.mailing import is_on

PROBED_ROWS = 20  # to find the column of the mail addresses
ACCEPTED = f".csv,.txt,.xlsx,text/csv,{workbooks.CONTENT_TYPE}"
OTHERS = {
    reading.CONNECTION: "Connection (its id)",
    reading.WALLET: "Hosted wallet (its id)",
    reading.NAME: "For whom (a name for your lists)",
    reading.ADDRESS: "Mail address (to mail the link to)",
    reading.REFERENCE: "Reference (no personal data)",
}


TECHNICAL = (reading.CONNECTION, reading.WALLET, reading.REFERENCE)


def other_columns() -> dict[str, str]:
    """OTHERS, without the addresses where organizations send no mails."""
    left_out = () if is_on() else (reading.ADDRESS,)
    return {name: label for name, label in OTHERS.items() if name not in left_out}


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
    column with the same name is taken. So it is with encoding, separator and the form
    of dates: what was not sent is found in the file.
    """

    file = forms.FileField(
        label="Spreadsheet",
        help_text="Excel (.xlsx) or CSV, at most 10 MB and 100,000 rows; the first line "
        "has the names of the columns.",
        widget=forms.FileInput(attrs={"accept": ACCEPTED}),
    )
    automatic_issuance = forms.BooleanField(
        label="Issue each as soon as its holder accepts", required=False, initial=True
    )
    encoding = forms.ChoiceField(
        label="Encoding", choices=list(reading.ENCODINGS.items()), required=False
    )
    separator = forms.ChoiceField(
        label="Between the cells",
        choices=[(name, name) for name in reading.SEPARATORS],
        required=False,
    )
    date_form = forms.ChoiceField(
        label="Days are written as", choices=DateForm.choices, required=False
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
        self.is_workbook = False
        self.asks_date_form = False
        self.questions: list[str] = []

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        if self.errors:
            return
        data = cleaned["file"].read()
        self.is_workbook = workbooks.is_workbook(data)
        try:
            if self.is_workbook:
                self.source = reading.CSVFile(workbooks.read_workbook(data), "comma")
            else:
                encoding = cleaned["encoding"] or reading.guess_encoding(data)
                self.initial["encoding"] = encoding
                self.initial["separator"] = cleaned["separator"]
                text = reading.decode_text(data, encoding)
                self.source = reading.CSVFile(text, cleaned["separator"])
                self.initial["separator"] = self.source.separator
            form, is_certain = guess_date_form(self._date_cells())
        except AgencyError as error:
            self.source = None
            self.add_error("file", error.message)
            return
        self.asks_date_form = form != DateForm.ISO
        self.initial["date_form"] = cleaned["date_form"] = cleaned["date_form"] or form
        missing = [
            target.label
            for target in self.targets
            if target.is_required and not target.chosen
        ]
        if missing:
            names = ", ".join(missing)
            self._ask(f"Choose below in which column is: {names}.")
        if not is_certain and "date_form" not in self.data:
            self._ask("Choose below how the days are written.")

    def _ask(self, question: str) -> None:
        """Let the form wait for an answer, which is no error."""
        self.questions.append(question)
        self.add_error(None, question)

    @property
    def found_fields(self) -> list[forms.BoundField]:
        """What was found in the file and can be changed; their choice is in `initial`."""
        is_text = not self.is_workbook and "encoding" in self.initial
        names = ["encoding", "separator"] if is_text else []
        return [self[name] for name in names]

    @property
    def main_targets(self) -> list[Target]:
        """The columns that people choose, without those of ids."""
        return [one for one in self.targets if one.name not in TECHNICAL]

    @property
    def technical_targets(self) -> list[Target]:
        return [one for one in self.targets if one.name in TECHNICAL]

    def _date_cells(self) -> Iterator[str]:
        """The cells of the attributes that are dates, where their column is known."""
        assert self.source, "the file was read"
        columns = [
            self.source.columns.index(target.chosen)
            for target in self.targets
            if target.chosen and self.definition.type_of(target.name) == DATE
        ]
        if columns:
            for _, cells in self.source.read_cells():
                yield from (cells[index] for index in columns if index < len(cells))

    @property
    def column_names(self) -> list[str]:
        return [name for name in self.source.columns if name] if self.source else []

    @cached_property
    def targets(self) -> list[Target]:
        attributes = self.definition.schema.attribute_names
        others = {
            name: label
            for name, label in other_columns().items()
            if name not in attributes
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

        Whatever its case, spaces and signs, but for OTHERS (`is_exact`): an attribute or a
        column of people's names must not become a reference, which is in clear text.
        """
        known = self.column_names
        if self.data.get(field) in known:
            return self.data[field]
        if is_exact and field in self.data:
            return ""
        if name not in known and name == reading.ADDRESS:
            return self._column_of_addresses()
        if name in known or is_exact:
            return name if name in known else ""
        return next((one for one in known if fold(one) == fold(name)), "")

    def _column_of_addresses(self) -> str:
        """The first column whose first cells are mail addresses, or ""."""
        assert self.source, "its columns are known"
        first = [cells for _, cells in islice(self.source.read_cells(), PROBED_ROWS)]
        for index, name in enumerate(self.source.columns):
            cells = [row[index] for row in first if index < len(row) and row[index]]
            if (
                name
                and cells
                and sum(bool(find_address(one)) for one in cells) * 2 > len(cells)
            ):
                return name
        return ""

    def source_rows(self) -> Iterator[reading.SourceRow]:
        """The rows of a valid form, as the API reads them."""
        assert self.source, "the form is valid"
        attributes = self.definition.schema.attribute_names
        columns = {
            target.name: self.source.columns.index(target.chosen)
            for target in self.targets
            if target.chosen
        }
        to_values = converter(self.definition, self.cleaned_data["date_form"])
        return self.source.read_rows(columns, attributes, to_values)


def fold(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
