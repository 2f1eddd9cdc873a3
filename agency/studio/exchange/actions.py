"""What people do on the exchange page beside cancelling: issue, revoke, accept."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.studio.exchange.kinds import CREDENTIAL, KINDS
from agency.studio.exchange.views import (
    get_object,
    may_accept,
    once_per_object,
    to_object_page,
)
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.pages import get_membership, studio_page
from core.api.views import heavy
from core.errors import AgencyError
from core.work import network_reads
from credentials import revocation
from tenants import audit
from tenants.models import Permission
from verifications.present_proof import prover

once_per_credential = once_per_form(
    back="studio:credential", keep=("tenant_id", "object_id")
)


def run_action(
    request: HttpRequest, row: Any, act: Callable[[], Any], done: str
) -> HttpResponse:
    """Run an action, then show the page of its object with `done` or the error."""
    try:
        act()
        messages.success(request, done)
    except AgencyError as error:
        messages.error(request, error.message)
    return to_object_page(row)


def recorded_with_reads(
    action: str, request: HttpRequest, row: Any, run: Callable[[], Any]
) -> Callable[[], Any]:
    """Return a function that runs the action and records it, in one transaction.

    It runs again after each ledger read that the action needs.
    """
    recorded = audit.recorded(run, action, row, by=request)
    return partial(network_reads.retry_transaction, recorded)


@heavy
@studio_page("POST")
@once_per_credential
def issue_credential(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Issue the values of the offer to a holder who has accepted it.

    If it can be revoked, a slot of a registry is reserved first, in a transaction of
    its own. The second transaction signs, locks the connection, sends the credential
    and records it.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    row = get_object(tenant, CREDENTIAL, object_id)

    def issue() -> None:
        reserved = revocation.reserve_slot(row)
        sign = partial(row.issue, None, reserved)
        recorded_with_reads("credential.issued", request, row, sign)()

    return run_action(request, row, issue, "The credential is issued.")


@heavy
@studio_page("GET", "HEAD", "POST")
@once_per_credential
def revoke_credential(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Revoke a credential after a question, as the API does.

    It is revoked and recorded in one transaction; the new list is published and the
    holder told after the commit. If the ledger does not respond (503
    `ledger_unavailable`), the page says so, but the credential is revoked and the list
    follows in the background.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    row = get_object(membership.tenant, CREDENTIAL, object_id)
    if request.method != "POST":
        context = {
            "membership": membership,
            "tenant": membership.tenant,
            "credential": row,
            "form": OnceForm(),
        }
        return render(request, "studio/revoke_credential.html", context)
    # Not audit.recorded(): revoke() begins its own transaction, and calls the network
    # after it.
    log = partial(audit.record, "credential.revoked", row, by=request)
    return run_action(
        request, row, partial(revocation.revoke, row, log), "It is revoked."
    )


@heavy
@studio_page("POST")
@once_per_object
def accept_for_holder(
    request: HttpRequest, tenant_id: UUID, kind: str, object_id: UUID
) -> HttpResponse:
    """Accept an offer, or answer a request, in a hosted wallet, as the API does.

    A request is answered with the oldest credentials that fit. The answer is sent and
    recorded in one transaction, which runs again after each ledger read.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    row = get_object(tenant, KINDS[kind], object_id)
    if not may_accept(row):
        messages.error(request, "There is nothing to accept here any more.")
        return to_object_page(row)

    def accept() -> None:
        if kind == "credential":
            run = partial(row.accept, revocation.reserve_for_issuer(row))
        else:
            run = partial(prover.send_answer, row, prover.prepare_answer(row))
        recorded_with_reads("exchange.accepted", request, row, run)()

    return run_action(request, row, accept, "It is accepted for the holder.")
