"""Mailings in the credentials API: the links of a bulk's offers go out by mail."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agency.mails import mailings, offers
from agency.words.mails import WAITS, reason_of
from core.api.openapi.operation import operation
from core.api.pagination import LINK, ListQuery, list_parameters, next_link
from core.api.serializers import Contract, IntegerField, Parameters, SharedFields
from core.api.views import View, get_or_404, heavy
from core.errors import Invalid
from credentials.api.serializers import CredentialContract
from credentials.models import Bulk, MailDay, Mailing, MailingRow
from tenants import audit
from tenants.branding import LANGUAGES
from tenants.models import Scope

STATES = [(str(state), str(state)) for state in Mailing.State]
MAX_SHOWN = 100  # mails with a reason, in one answer
SOURCE = (
    f"Where the addresses are: `{mailings.COLUMN}`, the member or column of the file, or "
    "an attribute."
)


class MailParameters(Parameters):
    """What the mails of a bulk say, and who gets one."""

    bulkId = serializers.CharField(max_length=128, help_text="Whose offers are mailed.")
    source = serializers.CharField(  # type: ignore[assignment]  # a field
        default=mailings.COLUMN, max_length=256, help_text=SOURCE
    )
    text = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=10 * offers.MAX_TEXT,
        help_text=f"Instead of our sentence, at most {offers.MAX_TEXT} characters in "
        f"{offers.MAX_LINES} lines, without links, addresses and HTML. "
        f"{', '.join(offers.FIELDS.values())} are filled in.",
    )
    language = serializers.ChoiceField(
        list(LANGUAGES.items()),
        required=False,
        help_text="Of the mails; else the organization's, else English.",
    )
    replyTo = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=254,
        help_text="The mail address to which answers go.",
    )


class MailingParameters(MailParameters):
    isReminder = serializers.BooleanField(
        default=False,
        help_text="To each who got a mail of the bulk and has not accepted, once: in "
        "the language of the newest mailing and in our words. Takes `bulkId` only.",
    )


class MailingQuery(ListQuery):
    bulkId = serializers.UUIDField(
        source="bulk", required=False, help_text="Only those of this bulk."
    )


class ErrorsQuery(SharedFields):
    errorsAfter = IntegerField(
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The number of a row: only mails of later ones. `Link` has it.",
    )


class MailPreviewContract(Contract[mailings.MailingPreview]):
    value_members = ("mailAddress", "text")
    value_kind = CredentialContract.value_kind

    mails = serializers.IntegerField(
        source="number", help_text="How many would be sent."
    )
    isExact = serializers.BooleanField(
        source="is_exact",
        help_text="False with an attribute: fewer, where it has no mail address.",
    )
    leftToday = serializers.IntegerField(
        help_text="How many the organization may still send today. Others wait."
    )
    mailAddress = serializers.CharField(
        source="address", required=False, help_text="Of the first who would get one."
    )
    subject = serializers.CharField(required=False, help_text="Of that mail.")
    text = serializers.CharField(required=False, help_text="Of that mail.")

    def get_leftToday(self, preview: mailings.MailingPreview) -> int:
        return self.context["left"]

    def get_subject(self, preview: mailings.MailingPreview) -> str | None:
        return preview.mail.subject if preview.mail else None

    def get_text(self, preview: mailings.MailingPreview) -> str | None:
        return preview.mail.body if preview.mail else None


class MailErrorContract(Contract[MailingRow]):
    row = serializers.IntegerField(
        source="number", help_text="Its number in the file, as in the bulk."
    )
    state = serializers.CharField(
        source="status",
        help_text="`Refused`, `Skipped`, `Unknown`, or `Waiting` after the mail server "
        "refused it for now.",
    )
    code = serializers.CharField()
    message = serializers.CharField()

    def get_code(self, row: MailingRow) -> str:
        is_unknown = row.status == MailingRow.Status.UNKNOWN
        return "outcome_unknown" if is_unknown else row.code

    def get_message(self, row: MailingRow) -> str:
        return reason_of(row)


class MailingSummary(Contract[Mailing]):
    mailingId = serializers.CharField(source="pk", help_text="The mailing.")
    bulkId = serializers.CharField(
        source="bulk_id",
        required=False,
        help_text="Left out for the mail of one offer, sent in the studio.",
    )
    state = serializers.ChoiceField(STATES)
    isReminder = serializers.BooleanField(
        source="is_reminder", help_text="To those who had not accepted."
    )
    language = serializers.ChoiceField(
        list(LANGUAGES.items()), help_text="Of the mails."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    finishedAtUtc = serializers.DateTimeField(
        source="finished_at", required=False, help_text="When no mail waited any more."
    )


class MailingContract(MailingSummary):
    waitsFor = serializers.ChoiceField(
        [(code, code) for code in WAITS],
        required=False,
        help_text="Why no mail is sent now, if there is a reason.",
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many mails are in which state: `Waiting`, `Sending`, `Sent`, "
        "`Refused`, `Unknown`, `Skipped`, `Stopped`.",
    )
    errors = MailErrorContract(  # type: ignore[assignment]  # a field
        many=True,
        help_text=f"Of the first {MAX_SHOWN} mails that were not sent; `Link` names the "
        "next ones.",
    )

    def get_waitsFor(self, mailing: Mailing) -> str | None:
        is_done = mailing.status == Mailing.Status.DONE
        return None if is_done else mailing.last_error or None

    def get_counts(self, mailing: Mailing) -> dict[str, int]:
        return mailing.count_rows()

    def get_errors(self, mailing: Mailing) -> list[MailingRow]:
        return self.context["errors"]


class Mailings(View):
    def get_bulk(self, bulk_id: str) -> Bulk:
        rows = Bulk.started(self.tenant).select_related("tenant")
        return get_or_404(rows, bulk_id)

    def get_mailing(self, mailing_id: str) -> Mailing:
        return get_or_404(Mailing.objects.filter(tenant=self.tenant), mailing_id)

    def respond(self, mailing_id: UUID | str, after: int = 0) -> Response:
        mailing = self.get_mailing(str(mailing_id))
        rows = mailing.rows_with_reason().filter(number__gt=after)
        errors = list(rows[: MAX_SHOWN + 1])
        response = self.to_response(MailingContract, mailing, errors=errors[:MAX_SHOWN])
        if len(errors) > MAX_SHOWN:
            last = str(errors[MAX_SHOWN - 1].number)
            response["Link"] = next_link(self.request, last, "errorsAfter")
        return response

    @operation(
        "previewMailing",
        Scope.ISSUE,
        request=MailParameters,
        response=MailPreviewContract,
        irreversible=True,
    )
    @heavy
    def preview(self, request: Request) -> Response:
        body = self.parse_body(MailParameters)
        bulk = self.get_bulk(body["bulkId"])
        shown = mailings.preview_mailing(
            bulk, source_in(body, bulk), options_in(body, bulk)
        )
        left = MailDay.left_today(self.tenant)
        return self.to_response(MailPreviewContract, shown, left=left)

    @operation(
        "createMailing",
        Scope.ISSUE,
        request=MailingParameters,
        response=MailingContract,
        irreversible=True,
    )
    @heavy
    def create(self, request: Request) -> Response:
        body = self.parse_body(MailingParameters)
        bulk = self.get_bulk(body["bulkId"])
        if body["isReminder"]:
            require_only_bulk(request.data)
            prepare = partial(mailings.prepare_reminder, bulk)
        else:
            chosen = source_in(body, bulk), options_in(body, bulk)
            prepare = partial(mailings.prepare_mailing, bulk, *chosen)
        begun = self.perform(mailings.begin_recorded, by=request, prepare=prepare)
        return self.respond(begun.pk)

    @operation(
        "listMailings",
        Scope.READ,
        response=MailingSummary(many=True),
        parameters=list_parameters(MailingQuery),
    )
    def list(self, request: Request) -> Response:
        rows = Mailing.objects.filter(tenant=self.tenant)
        return self.list_response(MailingSummary, rows, MailingQuery)

    @operation(
        "getMailing",
        Scope.READ,
        response=MailingContract,
        parameters=[ErrorsQuery, LINK],
    )
    def retrieve(self, request: Request, mailingId: str) -> Response:
        after = self.parse_query(ErrorsQuery).validated_data["errorsAfter"]
        return self.respond(mailingId, after)

    @operation("pauseMailing", Scope.ISSUE, response=MailingContract, irreversible=True)
    def pause(self, request: Request, mailingId: str) -> Response:
        return self.change(Mailing.pause, "bulk.mails_paused", mailingId)

    @operation(
        "resumeMailing", Scope.ISSUE, response=MailingContract, irreversible=True
    )
    def resume(self, request: Request, mailingId: str) -> Response:
        return self.change(Mailing.resume, "bulk.mails_resumed", mailingId)

    @operation("stopMailing", Scope.ISSUE, response=MailingContract, irreversible=True)
    def stop(self, request: Request, mailingId: str) -> Response:
        return self.change(Mailing.stop, "bulk.mails_stopped", mailingId)

    def change(
        self, function: Callable[[Mailing], object], action: str, mailing_id: str
    ) -> Response:
        mailing = self.get_mailing(mailing_id)
        # The log names the bulk, as for the buttons of its page.
        target = mailing.bulk or mailing
        self.perform(audit.recorded(function, action, target, by=self.request), mailing)
        return self.respond(mailing_id)


def source_in(body: dict[str, Any], bulk: Bulk) -> str:
    """400 `invalid_request` for what is neither the column nor an attribute."""
    source = body["source"]
    names = bulk.definition.schema.attribute_names
    if source != mailings.COLUMN and source not in names:
        message = f"Give {mailings.COLUMN}, or an attribute: {', '.join(names)}."
        raise Invalid("invalid_request", f"source: {message}", {"source": [message]})
    return source


def options_in(body: dict[str, Any], bulk: Bulk) -> mailings.MailOptions:
    """Errors as of clean_options()."""
    return mailings.clean_options(
        bulk.tenant, body["text"], body.get("language", ""), body["replyTo"]
    )


def require_only_bulk(given: Any) -> None:
    """400 `invalid_request` for what a reminder does not take."""
    others = [
        str(name)
        for name in MailParameters().fields
        if name != "bulkId" and given.get(name) is not None
    ]
    if others:
        message = "A reminder takes only `bulkId`: leave this out."
        errors = {name: [message] for name in others}
        raise Invalid("invalid_request", f"{others[0]}: {message}", errors)
