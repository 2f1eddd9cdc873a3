"""What people do on the exchange page beside cancelling: issue, revoke, accept."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.studio.exchange.kinds import KINDS, ConnectionPage, CredentialPage
from agency.studio.form_tokens import OnceForm
from agency.studio.pages import MemberRequest, member_action
from core.api.views import heavy
from core.errors import Conflict
from core.work import network_reads
from credentials import revocation
from credentials.models import Credential
from tenants import audit
from tenants.models import Permission
from verifications.models import Verification
from verifications.present_proof import prover


def run_with_reads(
    action: str,
    request: HttpRequest,
    row: Credential | Verification,
    run: Callable[[], None],
) -> None:
    """Run an action and record it, in one transaction.

    It runs again after each ledger read that the action needs.
    """
    network_reads.retry_transaction(audit.recorded(run, action, row, by=request))


@heavy
@member_action("studio:credential", needs=Permission.OPERATE)
def issue_credential(request: MemberRequest, object_id: UUID) -> str:
    """Issue the values of the offer to a holder who has accepted it.

    If it can be revoked, a slot of a registry is reserved first, in a transaction of
    its own. The second transaction signs, locks the connection, sends the credential
    and records it.
    """
    row = CredentialPage.find(request.tenant, object_id).row
    reserved = revocation.reserve_slot(row)
    sign = partial(row.issue, None, reserved)
    run_with_reads("credential.issued", request, row, sign)
    return "The credential is issued."


@heavy
@member_action("studio:credential", needs=Permission.OPERATE, asks=True)
def revoke_credential(request: MemberRequest, object_id: UUID) -> HttpResponse | str:
    """Revoke a credential after a question, as the API does.

    It is revoked and recorded in one transaction; the new list is published and the
    holder told after the commit. If the ledger does not respond (503
    `ledger_unavailable`), the page says so, but the credential is revoked and the list
    follows in the background.
    """
    row = CredentialPage.find(request.tenant, object_id).row
    if request.method != "POST":
        context = {"credential": row, "form": OnceForm()}
        return render(request, "studio/revoke_credential.html", context)
    # Not audit.recorded(): revoke() begins its own transaction, and calls the network
    # after it.
    log = partial(audit.record, "credential.revoked", row, by=request)
    revocation.revoke(row, log)
    return "It is revoked."


@heavy
@member_action("studio:{kind}", needs=Permission.OPERATE)
def accept_for_holder(request: MemberRequest, kind: str, object_id: UUID) -> str:
    """Accept an offer, or answer a request, in a hosted wallet, as the API does.

    A request is answered with the oldest credentials that fit. The answer is sent and
    recorded in one transaction, which runs again after each ledger read.
    """
    page = KINDS[kind].find(request.tenant, object_id)
    if isinstance(page, ConnectionPage) or not page.may_accept:
        raise Conflict("wrong_state", "There is nothing to accept here any more.")
    run: Callable[[], None]
    if isinstance(page, CredentialPage):
        offer = page.row
        run = partial(offer.accept, revocation.reserve_for_issuer(offer))
    else:
        asked = page.row
        run = partial(prover.send_answer, asked, prover.prepare_answer(asked))
    run_with_reads("exchange.accepted", request, page.row, run)
    return "It is accepted for the holder."
