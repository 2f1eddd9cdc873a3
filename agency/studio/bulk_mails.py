"""The studio's page to mail the links of a bulk, and its buttons."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render

from agency.mails import mailings, offers
from agency.mails.mailings import COLUMN
from agency.studio.form_tokens import OnceForm
from agency.studio.objects import mark_of, recipient_of, with_recipients
from agency.studio.pages import (
    MemberRequest,
    View,
    member_action,
    member_page,
    refusals_above,
)
from agency.words.mails import WAITS, reason_of
from core.api.views import heavy
from core.errors import NotFound
from core.work import transactions
from credentials.models import Bulk, Credential, MailDay, Mailing, MailingRow
from credentials.models.mailing import is_on
from tenants import audit
from tenants.branding import LANGUAGES
from tenants.models import Membership, Permission, Tenant
from verifications.wording import label_of

MAX_SHOWN = 20  # mails with a reason, of one mailing
MAX_MAILINGS = 2  # of a bulk
CHANGES = {
    "pause": (Mailing.pause, "bulk.mails_paused", "No further mails are sent for now."),
    "resume": (Mailing.resume, "bulk.mails_resumed", "The mails go on."),
    "stop": (Mailing.stop, "bulk.mails_stopped", "No further mails are sent."),
}
BADGES: dict[str, str] = {
    Mailing.State.PAUSED: "soon",
    Mailing.State.DONE: "good",
}


@dataclass(frozen=True)
class ShownReason:
    """Why a mail was not sent, as far as it is known.

    whom: of the offer; the name is masked as in lists.
    """

    number: int
    whom: str
    status: str
    text: str
    code: str


@dataclass(frozen=True)
class ShownMailing:
    """A mailing as the page of its bulk shows it."""

    mailing: Mailing
    badge: str
    counts: dict[str, int]
    total: int
    tried: int
    wait: str
    reasons: list[ShownReason]

    @property
    def is_running(self) -> bool:
        return self.mailing.state == Mailing.State.RUNNING


def list_mailings(bulk: Bulk, membership: Membership) -> tuple[list[ShownMailing], str]:
    """Return the mailings of a bulk, and what changes with them.

    Those that are not done first, of which change_with() takes the newest. Two queries
    for each of them, of which there are few.
    """
    newest = bulk.mailings.order_by(F("finished_at").desc(nulls_first=True), "-pk")
    shown = [show_mailing(one, membership) for one in newest[:MAX_MAILINGS]]
    version = "".join(
        f"-{one.mailing.state}{one.tried}{one.mailing.last_error}" for one in shown
    )
    return shown, version


def show_mailing(mailing: Mailing, membership: Membership) -> ShownMailing:
    counts = mailing.count_rows()
    total = sum(counts.values())
    left = sum(counts.get(status, 0) for status in MailingRow.UNFINISHED)
    rows = mailing.rows_with_reason().select_related("credential__connection")
    reasons = [
        ShownReason(
            row.number,
            whom_of(row.credential, membership),
            row.status,
            reason_of(row),
            row.code,
        )
        for row in with_recipients(rows, "credential__")[:MAX_SHOWN]
    ]
    return ShownMailing(
        mailing,
        BADGES.get(mailing.state, ""),
        counts,
        total,
        total - left,
        WAITS.get(mailing.last_error, "") if left else "",
        reasons,
    )


def whom_of(credential: Credential, membership: Membership) -> str:
    recipient = recipient_of(credential, membership)
    return " ".join(filter(None, (recipient, mark_of(credential, recipient))))


class TextForm(OnceForm):
    """What an organization writes in a mail."""

    language = forms.ChoiceField(label="Language", choices=list(LANGUAGES.items()))
    text = forms.CharField(
        label="Your text",
        required=False,
        max_length=offers.MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="Instead of our sentence. {name}, {card} and {organization} are "
        "filled in. Without links, addresses and HTML: the link of the offer follows.",
    )
    reply_to = forms.EmailField(
        label="Answers go to",
        required=False,
        help_text="The mail is sent by this service, with your organization's name.",
    )

    def options(self, tenant: Tenant) -> mailings.MailOptions:
        """What was typed. Errors as of clean_options()."""
        given = self.cleaned_data
        return mailings.clean_options(
            tenant, given["text"], given["language"], given["reply_to"]
        )


class OneMailForm(TextForm):
    """The mail of one offer."""

    address = forms.EmailField(label="Mail address of the holder", max_length=254)
    field_order = ["address"]


class MailForm(TextForm):
    """The mails of a bulk, with who gets one."""

    source = forms.ChoiceField(label="The addresses are in")
    field_order = ["source"]


def make_form(
    sources: list[str],
    data: QueryDict | None = None,
    initial: dict[str, str] | None = None,
) -> "MailForm":
    """The form, with what may have the addresses."""
    form = MailForm(data, initial=initial)
    form.fields["source"] = forms.ChoiceField(
        label="The addresses are in",
        choices=[(one, name_of_source(one)) for one in sources],
    )
    return form


def name_of_source(source: str) -> str:
    if source == COLUMN:
        return "The file’s column of mail addresses"
    return label_of(source)


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:bulk")
def mail_bulk(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Show what would be sent to how many; the button `send` sends it."""
    bulk = get_bulk(request, object_id)
    if not is_on():
        return render(request, "studio/mail_bulk.html", {"bulk": bulk, "is_off": True})
    sources = mailings.find_sources(bulk)
    chosen = {
        "source": sources[0] if sources else "",
        "language": request.tenant.default_language or mailings.FALLBACK,
        "reply_to": request.user.email,
    }
    if request.method != "POST":
        form = make_form(sources, initial=chosen)
        options = mailings.MailOptions(
            language=chosen["language"], reply_to=chosen["reply_to"]
        )
        return render_page(request, bulk, form, chosen["source"], options)
    form = make_form(sources, request.POST)
    if not form.is_valid():
        return render_page(request, bulk, form)
    source = form.cleaned_data["source"]
    with refusals_above(form):
        options = form.options(request.tenant)
        if "send" not in request.POST:
            return render_page(request, bulk, form, source, options)
        prepared = mailings.prepare_mailing(bulk, source, options)
        mailing = mailings.begin_recorded(prepared, by=request)
        messages.success(request, f"{mailing.rows.count()} mails are sent now.")
        return redirect("studio:bulk", request.tenant.pk, bulk.pk)
    return render_page(request, bulk, form)


def get_bulk(request: MemberRequest, object_id: UUID) -> Bulk:
    rows = Bulk.started(request.tenant).select_related("tenant")
    return get_object_or_404(rows, pk=object_id)


def render_page(
    request: HttpRequest,
    bulk: Bulk,
    form: MailForm,
    source: str = "",
    options: mailings.MailOptions | None = None,
) -> HttpResponse:
    """The form and, with options, what the first holder would get."""
    context: dict[str, Any] = {"bulk": bulk, "form": form, "source": source}
    context["left"] = MailDay.left_today(bulk.tenant)
    if options and source:
        shown = mailings.preview_mailing(bulk, source, options)
        context["number"] = shown.number
        context["is_exact"] = shown.is_exact
        context["address"] = shown.address
        context["mail"] = shown.mail
        context["language"] = options.language
    return render(request, "studio/mail_bulk.html", context)


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:mail_credential")
def mail_credential(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Show the mail with the link of one offer; the button `send` sends it.

    Its state is shown there too, also once the offer is not open any more.
    """
    rows = Credential.objects.select_related("connection", "tenant")
    credential = get_object_or_404(
        rows, tenant=request.tenant, role=Credential.Role.ISSUER, pk=object_id
    )
    definition = mailings.find_definition(request.tenant, credential.definition_id)
    last = mailings.last_mail_of(credential)
    context: dict[str, Any] = {
        "credential": credential,
        "is_off": not is_on(),
        "last": last,
        "reason": reason_of(last) if last and last.code else "",
        "is_mailed": bool(last and last.status in MailingRow.COUNTED),
        "is_open": mailings.open_offers(request.tenant).filter(pk=object_id).exists(),
        "left": MailDay.left_today(request.tenant),
    }
    language = request.tenant.default_language or mailings.FALLBACK
    chosen = {"language": language, "reply_to": request.user.email}
    form = OneMailForm(request.POST or None, initial=chosen)
    options = mailings.MailOptions(language=language, reply_to=request.user.email)
    if request.method == "POST" and form.is_valid():
        address = form.cleaned_data["address"]
        with refusals_above(form):
            options = form.options(request.tenant)
            if "send" in request.POST:
                with transactions.atomic():
                    mailings.begin_single(credential, address, options)
                    audit.record("credential.mailed", credential, by=request)
                messages.success(request, "The mail is sent now.")
                return redirect(request.path)
    if definition:
        context["mail"] = mailings.preview_mail(definition, credential, options)
    context |= {"form": form, "language": options.language}
    return render(request, "studio/mail_credential.html", context)


@member_action("studio:bulk", needs=Permission.OPERATE)
def remind_bulk(request: MemberRequest, object_id: UUID) -> str:
    """Mail those once more who have not accepted. A refusal is shown on the page."""
    bulk = get_bulk(request, object_id)
    mailing = mailings.begin_recorded(mailings.prepare_reminder(bulk), by=request)
    return f"{mailing.rows.count()} are reminded now."


def change_with(change: str) -> View:
    """Return the view of a button. change: one of CHANGES."""

    @member_action("studio:bulk", needs=Permission.OPERATE)
    def change_mails(request: MemberRequest, object_id: UUID) -> str:
        """Change the mailing of a bulk that is not done. 404 if there is none."""
        bulk = get_bulk(request, object_id)
        unfinished = bulk.mailings.filter(status=Mailing.Status.PENDING)
        mailing = unfinished.order_by("-pk").first()
        if not mailing:
            raise NotFound("not_found", "No mails of this file wait any more.")
        function, action, sentence = CHANGES[change]
        audit.recorded(function, action, bulk, by=request)(mailing)
        return sentence

    return change_mails
