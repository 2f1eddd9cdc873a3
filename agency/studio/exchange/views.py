"""The exchange page: one object, what became of it, and what can be done about it."""

import json
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Value
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from agency.studio.curl import example_call
from agency.studio.exchange import steps
from agency.studio.exchange.api_answer import api_path, masked_json
from agency.studio.exchange.kinds import (
    CREDENTIAL,
    KINDS,
    VERIFICATION,
    Kind,
    connection_of,
)
from agency.studio.exchange.page import exchange_context
from agency.studio.exchange.timeline import sent_rows
from agency.studio.exchange.values import masked_values, revealed_values
from agency.studio.exchange.words import ROLES
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import DeletionForm
from agency.studio.pages import MemberRequest, member_action, member_page
from connections import invitation_links
from connections.api.serializers import was_started_by_link
from connections.messaging import outbox
from connections.protocols import held_requests
from core.work import transactions
from tenants import audit
from tenants.models import Permission, Tenant
from verifications.models import Verification, VerificationPolicy

MAX_RELATED = 20
NO_VALUES = "There are no values yet."
TEMPLATE = "studio/exchange.html"
CANCEL_LABELS = {
    ("credential", "issuer"): "Cancel the offer",
    ("credential", "holder"): "Decline for the holder",
    ("verification", "verifier"): "Cancel the request",
    ("verification", "prover"): "Decline for the holder",
}
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
    row = get_object(request.tenant, KINDS[kind], object_id)
    return render_exchange(request, row)


@member_page("GET")
def show_live(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    """The part of the page that changes. 204 while it is what the page shows."""
    row = get_object(request.tenant, KINDS[kind], object_id)
    context = page_context(request, row)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return render(request, f"{TEMPLATE}#live", context | {"is_part": True})


def get_object(tenant: Tenant, kind: Kind, object_id: UUID) -> Any:
    """Return an object of the organization, of this kind. Raises Http404.

    404 too for connections that the API does not list.
    """
    row = kind.get_or_404(tenant, object_id)
    if getattr(row, "connectionless", False):
        raise Http404
    return row


def render_exchange(request: MemberRequest, row: Any, **more: Any) -> HttpResponse:
    context = page_context(request, row) | more
    return render(request, TEMPLATE, context)


def page_context(request: MemberRequest, row: Any) -> dict[str, Any]:
    """Return all that the studio shows of an object to this person.

    Adds to exchange_context() the values, masked, the links for those who may reveal
    values, and what the person and the state of the object allow.
    """
    name = f"studio:{row.OBJECT_TYPE}"
    may_act = request.membership.may(Permission.OPERATE)
    # Whoever has the link of an offer can take it and read its values.
    link = link_of(row) if may_act else ""
    values = masked_values(row)
    verdict = has_verdict(row)
    return exchange_context(row) | {
        "list_page": list_page(row),
        "may_act": may_act,
        **offered_actions(row),
        "cancel_label": CANCEL_LABELS.get((row.OBJECT_TYPE, row.role), ""),
        "form": OnceForm(),
        "has_verdict": verdict,
        "policy": find_policy(row) if verdict else None,
        "reveal_form": RevealForm(initial={"reason": READS_ANSWER if verdict else ""}),
        "reads_answer": READS_ANSWER,
        "reveal_url": f"{name}_reveal",
        "link": link,
        **(invitation_of(row) if link else {}),
        "link_token": getattr(connection_of(row), "token", ""),
        "values": values,
        "are_names_unique": len({value.name for value in values}) == len(values),
        # The values of a hosted wallet are the holder's.
        "can_reveal": row.wallet.is_organization
        and any(value.text for value in values),
        "related": exchanges_over(row),
        "page_url": name,
        "live_url": f"{name}_live",
        "cancel_url": f"{name}_cancel",
        "resend_url": f"{name}_resend",
        "accept_url": f"{name}_accept",
        "json": masked_json(request, row, links=may_act),
        "curl": example_call(api_path(row)),
    }


def link_of(row: Any) -> str:
    """The short link while somebody can use it, or "".

    Of an exchange it is the link that the exchange began with; not the link by which
    its connection was made before.
    """
    connection = connection_of(row)
    if connection is None or not connection.is_open:
        return ""
    is_its_own = row is connection or was_started_by_link(connection)
    ended = row is not connection and steps.has_ended(row)
    return connection.invitation_url or "" if is_its_own and not ended else ""


def invitation_of(row: Any) -> dict[str, str]:
    """The deep link and the JSON of the invitation of a connection that link_of() shows.

    Not of an offer or a request: their messages name values.
    """
    connection = connection_of(row)
    if row is not connection or invitation_links.shared_request(connection):
        return {}
    shared = invitation_links.shared_message(connection)
    return {
        "deep_link": invitation_links.deep_link(connection),
        "invitation_json": json.dumps(shared, indent=2, ensure_ascii=False),
    }


def has_verdict(row: Any) -> bool:
    """Whether the organization asked for a proof, and it was judged or refused.

    A proposal that was declined has none: its policy is a stranger's.
    """
    if (row.OBJECT_TYPE, row.role) != ("verification", "verifier"):
        return False
    has_asked = row.request_body is not None
    return has_asked and (row.is_valid is not None or row.state == row.State.REJECTED)


def find_policy(row: Verification) -> VerificationPolicy | None:
    """The policy by which it was asked, with which the next one can be asked."""
    rows = VerificationPolicy.objects.filter(tenant=row.tenant_id)
    return rows.filter(pk=row.policy_id).first() if row.policy_id else None


def list_page(row: Any) -> str:
    """The address of the list in which the object is."""
    name = f"{row.OBJECT_TYPE}s"
    if row.wallet.is_organization:
        return reverse(f"studio:{name}", args=[row.tenant_id])
    return reverse(f"studio:wallet_{name}", args=[row.tenant_id, row.wallet_id])


def offered_actions(row: Any) -> dict[str, bool]:
    """What the state of the object lets people do now."""
    is_credential = row.OBJECT_TYPE == "credential"
    is_issued = is_credential and (row.role, row.state) == ("issuer", "Issued")
    is_connected = row.OBJECT_TYPE == "connection" and row.state == "Connected"
    can_ping = is_connected and not row.left_at
    return {
        # A connection is deleted instead.
        "can_cancel": row.OBJECT_TYPE != "connection" and row.state in row.OPEN,
        "can_chat": is_connected and row.wallet.is_organization,
        "can_accept": may_accept(row),
        "can_issue": is_credential and (row.role, row.state) == ("issuer", "Requested"),
        "can_ask": is_issued,
        "can_revoke": is_issued and row.revocation_index is not None,
        "can_ping": can_ping,
        "can_offer": can_ping and row.wallet.is_organization,
    }


def may_accept(row: Any) -> bool:
    """Whether a hosted wallet has an open offer or request."""
    is_open = (row.role, row.state) in (("holder", "Offered"), ("prover", "Requested"))
    return is_open and not row.wallet.is_organization


def exchanges_over(row: Any) -> list[dict[str, Any]]:
    """The newest exchanges over a connection, in one query."""
    if row.OBJECT_TYPE != "connection":
        return []
    columns = ("pk", "state", "role", "created_at")
    found = [
        kind.model.objects.filter(connection=row)
        .order_by("-pk")
        .values(*columns, kind=Value(kind.name))[:MAX_RELATED]
        for kind in (CREDENTIAL, VERIFICATION)
    ]
    newest = found[0].union(found[1], all=True).order_by("-created_at")
    return [
        one | {"url": f"studio:{one['kind']}", "role": ROLES[one["role"]]}
        for one in newest[:MAX_RELATED]
    ]


def to_object_page(row: Any) -> HttpResponse:
    """Redirect to the page of a connection, credential or verification."""
    name = f"studio:{row.OBJECT_TYPE}"
    return redirect(name, tenant_id=row.tenant_id, object_id=row.pk)


@member_action("studio:{kind}", needs=Permission.OPERATE)
def cancel_exchange(request: MemberRequest, kind: str, object_id: UUID) -> str:
    """Decline an open exchange, which tells the other side, as the API does.

    Both and the audit entry are one transaction. 409 `wrong_state`, if it is not open
    any more, is shown on the page.
    """
    row = get_object(request.tenant, KINDS[kind], object_id)
    audit.recorded(row.decline, "exchange.cancelled", row, by=request)()
    return "It is cancelled, and the other side is told."


@member_page("POST", needs=Permission.OPERATE, once="studio:{kind}")
def reveal_values(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    """Show the values in this one answer, after the reason is in the log.

    The answer is not read again by the browser, as the page is: that would mask them.
    404 for objects of hosted wallets, whose values are the holder's.
    """
    row = get_object(request.tenant, KINDS[kind], object_id)
    if not row.wallet.is_organization:
        raise Http404
    form = RevealForm(request.POST)
    if not form.is_valid():
        return render_exchange(request, row, reveal_form=form)
    values = revealed_values(row)
    if not any(value.text for value in values):
        messages.info(request, NO_VALUES)
        return to_object_page(row)
    audit.record("values.revealed", row, by=request, reason=form.cleaned_data["reason"])
    more = {"revealed": values, "is_watched": False}
    return render_exchange(request, row, **more)


@member_action("studio:{kind}", needs=Permission.OPERATE)
def resend_message(
    request: MemberRequest, kind: str, object_id: UUID, message_id: UUID
) -> str:
    """Make a message to another agent due now, and record it, in one transaction.

    404 unless it is a message of this object. 409 `message_not_resendable` is shown on
    the page.
    """
    row = get_object(request.tenant, KINDS[kind], object_id)
    sent = get_object_or_404(sent_rows(row), pk=message_id)
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
    row = get_object(request.tenant, KINDS["connection"], object_id)
    name = row.name or row.connection_id
    form = DeletionForm(request.POST or None, name=name, of="connection")
    if not form.is_valid():
        context = {"connection": row, "form": form}
        return render(request, "studio/remove_connection.html", context)
    remove = held_requests.refuse_or_remove
    audit.recorded(remove, "connection.deleted", row, by=request)(row)
    messages.success(request, "The connection is deleted.")
    return redirect("studio:connections", request.tenant.pk)
