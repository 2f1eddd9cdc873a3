"""Issue many in the credentials API: a file of offers, which a worker makes."""

from collections.abc import Callable, Iterator, Mapping
from typing import IO, TypeVar

from django.http import StreamingHttpResponse
from django.utils.http import parse_header_parameters
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.ignored_members import MEMBERS_HEADER, header_value
from core.api.negotiation import JSONParser
from core.api.notes import NotesParameters
from core.api.openapi.operation import operation
from core.api.pagination import LINK, ListQuery, list_parameters, next_link
from core.api.serializers import (
    Contract,
    IntegerField,
    SharedFields,
    sees_values,
)
from core.api.views import View, get_or_404, heavy
from core.errors import Invalid
from credentials.api.definitions import get_definition_to_offer
from credentials.api.serializers import CredentialContract, values_field
from credentials.bulk import loading, reading, results, workbooks
from credentials.bulk.cells import DateForm, converter
from credentials.bulk.loading import BulkError
from credentials.bulk.retention import delete_bulk
from credentials.models import Bulk, CredentialDefinition
from tenants import audit
from tenants.models import Scope

STATES = [(str(state), str(state)) for state in Bulk.State]
CSV, JSON_LINES = "text/csv", "application/x-ndjson"


Shown = TypeVar("Shown")


class CSVText(str):
    """A body that is a CSV file."""


class LinesText(str):
    """A body of JSON lines."""


class CSVParser(BaseParser):
    """`Content-Type: text/csv; charset=windows-1252` names another encoding."""

    media_type = CSV
    text_class: type[str] = CSVText

    def parse(  # type: ignore[override]  # a text, not an object
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> str:
        _, options = parse_header_parameters(media_type or "")
        encoding = options.get("charset", "utf-8").lower()
        return self.text_class(reading.decode_text(stream.read(), encoding))


class LinesParser(CSVParser):
    media_type = JSON_LINES
    text_class = LinesText


class WorkbookParser(BaseParser):
    media_type = workbooks.CONTENT_TYPE

    def parse(  # type: ignore[override]  # a text, not an object
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> str:
        return CSVText(workbooks.read_workbook(stream.read()))


class BulkParameters(SharedFields):
    """The query of a call whose body is the file."""

    definitionId = serializers.CharField(max_length=300)
    network = serializers.CharField(
        required=False,
        max_length=64,
        help_text="Of the definition and its twin, offers the one that is on this "
        "network. Without it, rows over connections are offered as single offers are.",
    )
    automaticIssuance = serializers.BooleanField(
        default=False, help_text="Issue each as soon as its holder accepts."
    )
    dryRun = serializers.BooleanField(
        default=False, help_text="Only check the file: nothing is stored or offered."
    )
    dateForm = serializers.ChoiceField(
        DateForm.choices,
        default=DateForm.ISO,
        help_text="How the cells of dates are written; `1990-05-17` and `19900517` "
        "always may be. Not of JSON.",
    )


class BulkRowParameters(NotesParameters):
    """A row; see reading.read_object()."""

    connectionId = serializers.CharField(
        required=False, max_length=128, help_text="Without it the offer is a link."
    )
    walletId = serializers.CharField(
        required=False,
        max_length=128,
        help_text="Instead of it: a hosted wallet, over its newest connection.",
    )
    recipientName = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Of a link: whom it is for. Holders do not see it.",
    )
    mailAddress = serializers.CharField(
        required=False,
        max_length=254,
        help_text="Of a link: where it may be mailed to. Kept until the bulk is "
        "deleted, if organizations may send mails here.",
    )
    credentialValues = values_field()


class ErrorsQuery(SharedFields):
    errorsAfter = IntegerField(
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The number of a row: only errors of later ones. `Link` has it.",
    )


class BulkErrorContract(Contract[BulkError]):
    row = serializers.IntegerField(
        help_text="Its number in the file. The header of a CSV file is row 1."
    )
    column = serializers.CharField(
        required=False, help_text="The column; left out if the whole row is meant."
    )
    code = serializers.CharField()
    message = serializers.CharField()

    def to_representation(self, error: BulkError) -> dict[str, object]:
        return {name: value for name, value in error.items() if value != ""}


class BulkSummary(Contract[Shown]):
    bulkId = serializers.CharField(source="pk", help_text="The bulk.")
    state = serializers.ChoiceField(STATES)
    definitionId = serializers.CharField(source="definition.definition_id")
    network = serializers.CharField(
        required=False, help_text="That of the definition, if the call named it."
    )
    automaticIssuance = serializers.BooleanField(source="automatic_issuance")
    rows = serializers.IntegerField(
        source="row_count", help_text="How many rows the file has."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(
        source="updated_at",
        help_text="Grows with its state, and with each turn in which rows are offered.",
    )
    finishedAtUtc = serializers.DateTimeField(
        source="finished_at", required=False, help_text="When no row waited any more."
    )


class BulkContract(BulkSummary[Bulk | loading.DryRun]):
    """Describes one bulk, or a dry run, which has neither id nor state nor times."""

    bulkId = serializers.CharField(source="pk", required=False, help_text="The bulk.")
    state = serializers.ChoiceField(STATES, required=False)
    createdAtUtc = serializers.DateTimeField(source="created_at", required=False)
    updatedAtUtc = serializers.DateTimeField(source="updated_at", required=False)
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many rows are `Waiting` or `Failed`, or have a credential in "
        "which state. `Deleted`: its record was deleted.",
    )
    errors = BulkErrorContract(  # type: ignore[assignment]  # a field
        many=True,
        help_text=f"Of the first {loading.MAX_SHOWN} rows that failed; `Link` names "
        "the next ones.",
    )

    def get_counts(self, bulk: Bulk | loading.DryRun) -> dict[str, int]:
        return self.context["counts"]

    def get_errors(self, bulk: Bulk | loading.DryRun) -> list[BulkError]:
        return self.context["errors"]


class Bulks(View):
    """Bulk issuances."""

    parser_classes = [CSVParser, WorkbookParser, LinesParser, JSONParser]

    def get_bulk(self, bulk_id: str) -> Bulk:
        return get_or_404(Bulk.started(self.tenant), bulk_id)

    def read_rows(
        self, definition: CredentialDefinition, date_form: str
    ) -> Iterator[reading.SourceRow]:
        """The rows of the body, an iterator: each is read when it is checked.

        Columns of a CSV file that are no attribute are ignored, and named in a header
        of the response. 400 if the body cannot be read (credentials/bulk/reading.py);
        what is wrong with one row is kept with it.
        """
        data = self.request.data
        if isinstance(data, CSVText):
            file = reading.CSVFile(data)
            columns = reading.choose_columns(
                file.columns, definition.schema.attribute_names
            )
            ignored = [name for name in file.columns if name not in columns]
            if named := header_value(ignored):
                self.headers[MEMBERS_HEADER] = named
            to_values = converter(definition, date_form)
            names = definition.schema.attribute_names
            return file.read_rows(columns, names, to_values)
        if isinstance(data, LinesText):
            return reading.read_json_lines(data)
        if not isinstance(data, list):
            message = f"Send {CSV}, .xlsx, {JSON_LINES} or an array of JSON objects."
            raise Invalid("invalid_request", message, {"body": [message]})
        return (reading.read_object(number, row) for number, row in enumerate(data, 1))

    def respond(self, bulk: Bulk, after: int = 0) -> Response:
        errors, last = loading.list_errors(bulk, after)
        response = self.to_response(
            BulkContract, bulk, errors=errors, counts=bulk.count_rows()
        )
        if last:
            response["Link"] = next_link(self.request, str(last), "errorsAfter")
        return response

    @operation(
        "createBulk",
        Scope.ISSUE,
        request={
            "application/json": BulkRowParameters(many=True),
            CSV: OpenApiTypes.STR,
            # A workbook is not listed: generators of clients stop at its type.
            JSON_LINES: OpenApiTypes.STR,
        },
        response=BulkContract,
        parameters=[BulkParameters],
        irreversible=True,
    )
    @heavy
    def create(self, request: Request) -> Response:
        query = self.parse_query(BulkParameters).validated_data
        definition = get_definition_to_offer(self.tenant, query)
        rows = self.read_rows(definition, query["dateForm"])
        network = query.get("network", "")
        options = (definition, rows, query["automaticIssuance"], network)
        if query["dryRun"]:
            tried = loading.count_only(*options)
            return self.to_response(
                BulkContract, tried, errors=tried.errors, counts=tried.counts
            )
        # Stored in many short transactions, before the one in which it begins.
        bulk = self.perform(
            Bulk.begin_issuing, prepare=lambda: loading.store_rows(*options)
        )
        return self.respond(bulk)

    @operation(
        "listBulks",
        Scope.READ,
        response=BulkSummary(many=True),
        parameters=list_parameters(ListQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(BulkSummary, Bulk.started(self.tenant))

    @operation(
        "getBulk", Scope.READ, response=BulkContract, parameters=[ErrorsQuery, LINK]
    )
    def retrieve(self, request: Request, bulkId: str) -> Response:
        after = self.parse_query(ErrorsQuery).validated_data["errorsAfter"]
        return self.respond(self.get_bulk(bulkId), after)

    @operation("pauseBulk", Scope.ISSUE, response=BulkContract, irreversible=True)
    def pause(self, request: Request, bulkId: str) -> Response:
        return self.change(Bulk.pause, bulkId)

    @operation("resumeBulk", Scope.ISSUE, response=BulkContract, irreversible=True)
    def resume(self, request: Request, bulkId: str) -> Response:
        return self.change(Bulk.resume, bulkId)

    @operation("retryBulk", Scope.ISSUE, response=BulkContract, irreversible=True)
    def retry(self, request: Request, bulkId: str) -> Response:
        return self.change(Bulk.retry_failed, bulkId)

    @operation("deleteBulk", Scope.ISSUE)
    def destroy(self, request: Request, bulkId: str) -> Response:
        delete_bulk(self.get_bulk(bulkId), by=request)
        return Response()

    def change(self, function: Callable[[Bulk], object], bulk_id: str) -> Response:
        self.perform(function, self.get_bulk(bulk_id))
        return self.respond(self.get_bulk(bulk_id))

    @operation("getBulkResult", Scope.READ, response={(200, CSV): OpenApiTypes.STR})
    def result(self, request: Request, bulkId: str) -> StreamingHttpResponse:
        bulk = self.get_bulk(bulkId)
        with_values = sees_values(request)
        if with_values and bulk.row_count:
            audit.record_reading(self.token, CredentialContract.value_kind, by=request)
        lines = results.write_results(bulk, with_values)
        return StreamingHttpResponse(lines, content_type=f"{CSV}; charset=utf-8")
