"""The exchange page: one object, what became of it, and what can be done about it."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from agency.holders.links.links import find_link
from agency.holders.links.views import render_sheet
from agency.studio.curl import example_call
from agency.studio.exchange.api_answer import api_path
from agency.studio.exchange.just_typed import may_see
from agency.studio.exchange.kinds import (
    KINDS,
    AnyPage,
    ConnectionPage,
    CredentialPage,
)
from agency.studio.exchange.known_cards import find_case
from agency.studio.exchange.revoker import find_revoker
from agency.studio.exchange.timeline import sent_rows
from agency.studio.exchange.values import Value
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import DeletionForm
from agency.studio.named_people import name_people
from agency.studio.objects import recipient_of
from agency.studio.pages import MemberRequest, member_action, member_page
from agency.words.states import Subject
from connections.messaging import outbox
from connections.protocols import held_requests
from core.work import transactions
from credentials.models import Credential
from credentials.models.mailing import is_on
from tenants import audit
from tenants.models import Permission
from verifications.models import Verification

NO_VALUES = "There are no values yet."
TEMPLATE = "studio/exchange.html"
# Why somebody reads the answer to their own request, unless they write another.
READS_ANSWER = "To read the answer"


class RevealForm(OnceForm):
    reason = forms.CharField(
        label="Why do you look at them?",
        min_length=5,
        max_length=audit.MAX_REASON,
        help_text="It is written to the log, with your name. Give no values here.",
    )


@member_page("GET")
def show_exchange(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    return render_exchange(request, KINDS[kind].find(request.tenant, object_id))


@member_page("GET")
def show_live(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    """The part of the page that changes. 204 while it is what the page shows."""
    context = page_context(request, KINDS[kind].find(request.tenant, object_id))
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return render(request, f"{TEMPLATE}#live", context | {"is_part": True})


def render_exchange(
    request: MemberRequest,
    page: AnyPage,
    reveal_form: RevealForm | None = None,
    revealed: list[Value] | None = None,
) -> HttpResponse:
    """Render it; with values that are revealed, it is not read again."""
    context = page_context(request, page)
    if reveal_form:
        context["reveal_form"] = reveal_form
    if revealed:
        card = page.card(texts_of(revealed))
        context |= {"revealed": revealed, "is_watched": False, "card": card}
    return render(request, TEMPLATE, context)


def page_context(request: MemberRequest, page: AnyPage) -> dict[str, Any]:
    """Return all that the studio shows of an object to this person.

    Adds to the context of everybody the values, masked, the links for those who may
    reveal values, and what the person and the state of the object allow.
    """
    row = page.row
    name = f"studio:{page.kind}"
    may_act = request.membership.may(Permission.OPERATE)
    # Whoever has the link of an offer can take it and read its values.
    link = page.link() if may_act else ""
    values = page.masked_values()
    verdict = page.has_verdict
    name_people(request.tenant, [row])
    shown = vars(page.shown())
    is_typed = may_see(request, row)
    if is_typed:  # until its time is over, the page looks whether it is
        shown |= {"is_watched": True, "version": f"{shown['version']}-typed"}
    return shown | {
        "is_typed": is_typed,
        "list_page": page.list_url,
        "may_act": may_act,
        **page.actions(),
        "cancel_label": page.cancel_labels.get(row.role, ""),
        "form": OnceForm(),
        "has_verdict": verdict,
        "card": page.card(texts_of(page.attributes()) if is_typed else None),
        "policy": page.find_policy() if verdict else None,
        "case": find_case(request.membership, row)
        if verdict and isinstance(row, Verification)
        else None,
        "revoked_by": find_revoker(request.membership, row, shown["timeline"])
        if isinstance(row, Credential)
        else "",
        "reveal_form": RevealForm(initial={"reason": READS_ANSWER if verdict else ""}),
        "reads_answer": READS_ANSWER,
        "reveal_url": f"{name}_reveal",
        "link": link,
        "may_mail": bool(link) and isinstance(page, CredentialPage) and is_on(),
        **(page.invitation() if link else {}),
        "link_token": getattr(page.connection, "token", ""),
        "values": values,
        "are_names_unique": len({value.name for value in values}) == len(values),
        # The values of a hosted wallet are the holder's.
        "can_reveal": row.wallet.is_organization
        and any(value.text for value in values),
        "related": page.exchanges(),
        "page_url": name,
        "live_url": f"{name}_live",
        "cancel_url": f"{name}_cancel",
        "resend_url": f"{name}_resend",
        "accept_url": f"{name}_accept",
        "json": page.masked_json(request, links=may_act),
        "curl": example_call(api_path(row)),
    }


@member_page("GET", needs=Permission.OPERATE)
def show_sheet(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """The sheet of an offer to print, with the name of whom it is for."""
    page = CredentialPage.find(request.tenant, object_id)
    connection = page.connection
    link = find_link(connection.token) if connection and page.link() else None
    if link is None:
        return to_object_page(page.row)
    back = reverse("studio:credential", args=[request.tenant.pk, object_id])
    return render_sheet(request, link, recipient_of(page.row, request.membership), back)


def texts_of(values: Iterable[Value]) -> dict[str, str]:
    return {value.name: value.text for value in values}


def to_object_page(row: Subject) -> HttpResponse:
    """Redirect to the page of a connection, credential or verification."""
    return redirect(f"studio:{row.OBJECT_TYPE}", row.tenant_id, row.pk)


@member_action("studio:{kind}", needs=Permission.OPERATE)
def cancel_exchange(request: MemberRequest, kind: str, object_id: UUID) -> str:
    """Decline an open exchange, which tells the other side, as the API does.

    Both and the audit entry are one transaction. 409 `wrong_state`, if it is not open
    any more, is shown on the page.
    """
    page = KINDS[kind].find(request.tenant, object_id)
    assert not isinstance(page, ConnectionPage), "no route cancels a connection"
    row = page.row
    audit.recorded(row.decline, "exchange.cancelled", row, by=request)()
    return "It is cancelled, and the other side is told."


@member_page("POST", needs=Permission.OPERATE, once="studio:{kind}")
def reveal_values(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    """Show the values in this one answer, after the reason is in the log.

    The answer is not read again by the browser, as the page is: that would mask them.
    404 for objects of hosted wallets, whose values are the holder's.
    """
    page = KINDS[kind].find(request.tenant, object_id)
    if not page.row.wallet.is_organization:
        raise Http404
    form = RevealForm(request.POST)
    if not form.is_valid():
        return render_exchange(request, page, reveal_form=form)
    values = page.values()
    if not any(value.text for value in values):
        messages.info(request, NO_VALUES)
        return to_object_page(page.row)
    reason = form.cleaned_data["reason"]
    audit.record("values.revealed", page.row, by=request, reason=reason)
    return render_exchange(request, page, revealed=values)


@member_action("studio:{kind}", needs=Permission.OPERATE)
def resend_message(
    request: MemberRequest, kind: str, object_id: UUID, message_id: UUID
) -> str:
    """Make a message to another agent due now, and record it, in one transaction.

    404 unless it is a message of this object. 409 `message_not_resendable` is shown on
    the page.
    """
    page = KINDS[kind].find(request.tenant, object_id)
    rows = sent_rows(page.row, page.connection)
    sent = get_object_or_404(rows, pk=message_id)
    with transactions.atomic():
        outbox.resend_message(sent)
        audit.record("message.resent", sent, by=request)
    return "The message is sent again now."


@member_action("studio:connection", needs=Permission.OPERATE, once="", asks=True)
def remove_connection(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Delete a connection after its name is typed, as the API does.

    A request to connect that waits on it is refused first. All is one transaction with
    the audit entry.
    """
    row = ConnectionPage.find(request.tenant, object_id).row
    name = row.name or row.connection_id
    form = DeletionForm(request.POST or None, name=name, of="connection")
    if not form.is_valid():
        context = {"connection": row, "form": form}
        return render(request, "studio/remove_connection.html", context)
    remove = held_requests.refuse_or_remove
    audit.recorded(remove, "connection.deleted", row, by=request)(row)
    messages.success(request, "The connection is deleted.")
    return redirect("studio:connections", request.tenant.pk)
