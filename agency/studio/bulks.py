"""The studio's pages to issue many: a file, its check, its progress and its result.

The calls of the API check, store and change it.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect

from agency.studio.bulk_forms import BulkForm, other_columns
from agency.studio.bulk_mails import list_mailings
from agency.studio.choices import choose_from
from agency.studio.definitions import get_definition
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import DEFINITIONS
from agency.studio.objects import MASK
from agency.studio.pages import (
    MemberRequest,
    View,
    member_action,
    member_page,
    refusals_above,
)
from agency.studio.printed_codes import Code, render_codes
from agency.words.states import BULK, labels_of
from core.api.views import heavy
from core.database.uuids import parse_uuid
from core.text.csv_text import line_writer
from core.work import transactions
from credentials.bulk import loading, results, workbooks
from credentials.bulk.cells import DateForm
from credentials.bulk.loading import BulkError
from credentials.bulk.retention import delete_bulk
from credentials.models import Bulk, Credential
from credentials.models.definition import DATE, INTEGER
from credentials.models.mailing import is_on
from tenants import audit
from tenants.models import Membership, Permission, Tenant
from verifications.wording import label_of, value_words

MAX_SHOWN = 50  # bulks, the newest
MAX_PRINTED = 100  # QR codes of a page
EXAMPLES = {DATE: "1990-05-17", INTEGER: "42"}  # cells of the template
TEMPLATE = "studio/bulk.html"
CHANGES = {
    "pause": (Bulk.pause, "bulk.paused", "It is paused."),
    "resume": (Bulk.resume, "bulk.resumed", "It goes on."),
    "retry": (Bulk.retry_failed, "bulk.retried", "The failed rows are tried again."),
}


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:bulks")
def show_bulks(request: MemberRequest) -> HttpResponse:
    """The bulks and the choice of a definition; with one, the form of a file.

    A file that is sent is only checked and counted, until the button `start` sends it
    once more. Errors of the API are shown above the form.
    """
    definition_id = parse_uuid(request.GET.get("definition", ""))
    if not definition_id:
        context = {
            "bulks": Bulk.started(request.tenant).order_by("-pk")[:MAX_SHOWN],
            **choose_from(request, DEFINITIONS, request.tenant),
        }
        return render(request, "studio/bulks.html", context)
    definition = get_definition(request.tenant, definition_id)
    if request.method != "POST":
        return render_form(request, BulkForm(definition=definition))
    form = BulkForm(request.POST, request.FILES, definition=definition)
    if not form.is_valid():
        return render_form(request, form)
    with refusals_above(form):
        if "start" in request.POST:
            return to_bulk_page(request, start_bulk(request, form))
        chosen = form.cleaned_data["automatic_issuance"]
        found = loading.count_only(definition, form.source_rows(), chosen)
        return render_form(request, form, found)
    return render_form(request, form)


def start_bulk(request: HttpRequest, form: BulkForm) -> Bulk:
    """Store the rows of the file, then let workers offer them.

    The rows are committed some hundred at a time; nobody sees them before the last
    transaction, which begins the bulk and records it. 409 `too_many_bulks`.
    """
    chosen = form.cleaned_data["automatic_issuance"]
    name = form.cleaned_data["file"].name
    bulk = loading.store_rows(
        form.definition, form.source_rows(), chosen, file_name=name
    )
    with transactions.atomic():
        audit.record("bulk.started", bulk, by=request, rows=bulk.row_count)
        return bulk.begin_issuing()


def to_bulk_page(request: HttpRequest, bulk: Bulk) -> HttpResponse:
    """Redirect to the page of a bulk, also after a form that htmx has sent."""
    if "HX-Request" in request.headers:
        address = reverse("studio:bulk", args=[bulk.tenant_id, bulk.pk])
        return HttpResponseClientRedirect(address)
    return redirect("studio:bulk", bulk.tenant_id, bulk.pk)


def render_form(
    request: MemberRequest,
    form: BulkForm,
    found: loading.DryRun | None = None,
) -> HttpResponse:
    """The page with the form; for htmx what follows its file, which stays chosen."""
    context = {
        "form": form,
        "definition": form.definition,
        "found": found,
        "day_form": DateForm(form.cleaned_data["date_form"]).label if found else "",
        "cards": [
            [(label_of(name), value_words(name, value)) for name, value in one.items()]
            for one in (found.first if found else [])
        ],
    }
    is_part = "HX-Request" in request.headers
    template = "studio/new_bulk.html"
    response = render(request, f"{template}#found" if is_part else template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@member_page("GET")
def download_template(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """A CSV file with its header and one example."""
    definition = get_definition(request.tenant, object_id)
    names = definition.schema.attribute_names
    others = [name for name in other_columns() if name not in names]
    examples = [EXAMPLES.get(definition.type_of(name), "Example") for name in names]
    write_line = line_writer()
    lines = (
        write_line([*names, *others]),
        write_line([*examples, *("" for _ in others)]),
    )
    return HttpResponse(
        "".join(lines),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="credentials.csv"'},
    )


@member_page("GET")
def show_bulk(request: MemberRequest, object_id: UUID) -> HttpResponse:
    bulk = get_bulk(request.tenant, object_id)
    return render(request, TEMPLATE, bulk_context(request, bulk))


@member_page("GET")
def show_live(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """The part of the page that changes. 204 while it is what the page shows."""
    bulk = get_bulk(request.tenant, object_id)
    context = bulk_context(request, bulk)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return render(request, f"{TEMPLATE}#live", context)


def get_bulk(tenant: Tenant, object_id: UUID) -> Bulk:
    return get_object_or_404(Bulk.started(tenant), pk=object_id)


def with_whom(
    bulk: Bulk, errors: Sequence[BulkError], membership: Membership
) -> list[dict[str, Any]]:
    """The errors of rows, each with `whom` the row is for, as far as the file says it.

    Names are masked as in lists.
    """
    numbers = {error["row"] for error in errors}
    rows = results.rows_with(bulk, results.WITH_VALUES).filter(number__in=numbers)
    attribute = bulk.definition.recipient_attribute
    whom = {}
    for row in rows if errors else ():
        name = results.name_of(row) or (results.values_of(row) or {}).get(attribute)
        if name and not membership.may(Permission.NAMES):
            name = MASK
        whom[row.number] = name or row.connection_id or row.wallet_id
    return [{**error, "whom": whom.get(error["row"], "")} for error in errors]


def bulk_context(request: MemberRequest, bulk: Bulk) -> dict[str, Any]:
    """Return what the page shows of a bulk, also while it is read again.

    `after` in the query: the number of the row after which failed rows are listed.
    version: the browser loads the live part again if it has changed.
    """
    counts = bulk.count_rows()
    after = request.GET.get("after", "")
    # Larger numbers may not fit into the column.
    first = int(after) if after.isdecimal() and len(after) < 10 else 0
    errors, last = loading.list_errors(bulk, first)
    numbers = "-".join(f"{name}{number}" for name, number in sorted(counts.items()))
    mails, mails_version = list_mailings(bulk, request.membership)
    words = BULK[bulk.state]
    labels = labels_of(Credential, Credential.Role.ISSUER)
    return {
        "bulk": bulk,
        "counts": counts,
        "states": [(labels.get(name, name), one) for name, one in counts.items()],
        "tried": bulk.row_count - counts.get("Waiting", 0),
        "can_retry": counts.get("Failed", 0) > 0 and bulk.rows_to_retry().exists(),
        "errors": with_whom(bulk, errors, request.membership),
        "first": first,
        "last": last,
        "badge": words.badge,
        "next": words.staff,
        "mails": mails,
        "may_mail": is_on() and bulk.state != Bulk.State.RUNNING,
        "is_watched": bulk.state == Bulk.State.RUNNING
        or any(one.is_running for one in mails),
        "version": f"{bulk.state}-{numbers}{mails_version}",
        "may_act": request.membership.may(Permission.OPERATE),
        "form": OnceForm(),
    }


def change_with(change: str) -> View:
    """Return the view of a button. change: one of CHANGES."""

    @member_action("studio:bulk", needs=Permission.OPERATE)
    def change_bulk(request: MemberRequest, object_id: UUID) -> str:
        """Change it in one transaction with the audit entry.

        A refusal, as of a bulk in another state, is shown on its page.
        """
        bulk = get_bulk(request.tenant, object_id)
        function, action, sentence = CHANGES[change]
        audit.recorded(function, action, bulk, by=request)(bulk)
        return sentence

    return change_bulk


@member_action("studio:bulk", needs=Permission.OPERATE, once="", asks=True)
def remove_bulk(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Delete a bulk after a question, as the API does."""
    bulk = get_bulk(request.tenant, object_id)
    if request.method != "POST":
        return render(request, "studio/remove_bulk.html", {"bulk": bulk})
    delete_bulk(bulk, by=request)
    messages.success(request, "It is deleted. What it offered stays.")
    return redirect("studio:bulks", request.tenant.pk)


@member_page("GET", needs=Permission.OPERATE)
def download_result(request: MemberRequest, object_id: UUID) -> HttpResponseBase:
    """The file with what became of each row, for those who may offer. It is recorded.

    It has values, and the links of offers, which whoever has one can take.
    """
    bulk = get_bulk(request.tenant, object_id)
    audit.record("values.revealed", bulk, by=request, rows=bulk.row_count)
    return StreamingHttpResponse(
        results.write_results(bulk),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{bulk.pk}.csv"'},
    )


@heavy
@member_page("GET", needs=Permission.OPERATE)
def download_workbook(request: MemberRequest, object_id: UUID) -> HttpResponseBase:
    """What download_result() has, for Excel. It is recorded too."""
    bulk = get_bulk(request.tenant, object_id)
    audit.record("values.revealed", bulk, by=request, rows=bulk.row_count)
    return FileResponse(
        results.write_workbook(bulk),
        as_attachment=True,
        filename=f"{bulk.pk}.xlsx",
        content_type=workbooks.CONTENT_TYPE,
    )


@heavy
@member_page("GET", needs=Permission.OPERATE)
def show_printed(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """The links that wait for their holders, each as a QR code with a name, to print.

    `form` in the query: `sheets`, a page of paper for each, or `labels`. `after`: the
    number of the row after which they begin; a page has MAX_PRINTED.
    """
    bulk = get_bulk(request.tenant, object_id)
    after = request.GET.get("after", "")
    first = int(after) if after.isdecimal() and len(after) < 10 else 0
    found = results.list_links(bulk, first, MAX_PRINTED + 1)
    about = bulk.definition.schema.name
    codes = [Code(one.name, about, one.url) for one in found[:MAX_PRINTED]]
    last = found[MAX_PRINTED - 1].number if len(found) > MAX_PRINTED else None
    back = reverse("studio:bulk", args=[request.tenant.pk, bulk.pk])
    return render_codes(request, codes, back, last)
