"""Ask the same party once more for a proof, by the policy of an earlier request."""

from functools import partial
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from agency.studio.exchange.kinds import VerificationPage
from agency.studio.exchange.views import to_object_page
from agency.studio.pages import MemberRequest, member_action
from connections.protocols import connectionless
from core.api.views import heavy
from core.errors import WrongState
from core.work import network_reads
from tenants import audit
from tenants.models import Permission, Tenant
from verifications import kiosks
from verifications.models import Kiosk, Verification
from verifications.present_proof import verifier
from wallets.models import Wallet


@heavy
@member_action("studio:verification", needs=Permission.OPERATE)
def ask_again(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Ask again, and redirect to the page of the new request.

    It is sent and recorded in one transaction. A refusal is shown on the page of the
    earlier one. 404 unless the organization has asked.
    """
    tenant = request.tenant
    asked = Verification.objects.filter(
        wallet=Wallet.of_organization(tenant), role=Verification.Role.VERIFIER
    )
    row = get_object_or_404(asked.select_related("connection"), pk=object_id)
    send = partial(send_again, tenant, row)
    ask = audit.recorded(send, "verification.requested", by=request)
    return to_object_page(network_reads.retry_transaction(ask))


def send_again(tenant: Tenant, row: Verification) -> Verification:
    """Send the new request as the earlier one, and return it.

    It goes over the same connection, to the screen of the same kiosk, or by a new link
    if the earlier one was a link. It has the stored policy, or if that was deleted the
    policy of the earlier request, with its dates. 409 `wrong_state`, `connection_gone`.
    """
    page = VerificationPage(row)
    if not page.has_verdict:
        raise WrongState(row, [row.State.ACCEPTED, row.State.REJECTED])
    kiosk = Kiosk.objects.filter(tenant=tenant, verification_id=row.pk).first()
    if kiosk and kiosks.replace_request(kiosk):
        kiosk.refresh_from_db(fields=["verification_id"])
        return Verification.objects.get(pk=kiosk.verification_id)
    policy = page.find_policy()
    asked = (policy or row).unsealed_policy()
    key = policy.pk if policy else None
    connection = row.require_connection()
    if connection.connectionless:
        wallet = Wallet.of_organization(tenant)
        options = connectionless.default_options(tenant)
        return verifier.send_request_by_link(wallet, asked, key, options=options)
    return verifier.send_request(connection, asked, key)
