"""Check a card that was issued, with one button and no policy to write."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from agency.studio.card_policies import card_of_definition
from agency.studio.pages import MemberRequest, member_page
from agency.studio.policies import ask_for_policy, find_policy_about, refuse_to_ask
from agency.studio.policy_builder import read_policy
from agency.studio.recipients import find_chosen
from core.api.views import heavy
from credentials.models import Credential, CredentialDefinition
from tenants import audit
from tenants.models import Permission
from verifications.models import VerificationPolicy
from wallets.models import Wallet


@heavy
@member_page("POST", needs=Permission.OPERATE, once="studio:credentials")
def check_card(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Ask the holder of an issued credential for it, and lead to the request.

    By the newest policy about its definition alone. Without one, the policy is created
    that *New policy* begins with: each attribute is shown, and one that says until
    when it is valid is only compared with today. Over the connection of the credential,
    or by a link if it was issued by a link. A connection that has ended or was deleted
    is refused, as anybody could answer a link. The policy stays then. 404 unless the
    credential was issued here and is not revoked.
    """
    tenant = request.tenant
    issued = Credential.objects.filter(
        wallet=Wallet.of_organization(tenant),
        role=Credential.Role.ISSUER,
        state=Credential.State.ISSUED,
    )
    credential = get_object_or_404(issued, pk=object_id)
    definitions = CredentialDefinition.active_of(tenant)
    definition = definitions.filter(definition_id=credential.definition_id).first()
    if definition is None:  # deleted: nothing tells what to ask
        return redirect("studio:new_policy", tenant.pk)
    policy = find_policy_about(tenant, definition)
    if policy is None:
        wanted = read_policy(card_of_definition(definition).to_draft().body())
        create = audit.recorded(VerificationPolicy.create, "policy.created", by=request)
        policy = create(tenant, wanted)
    issued_over = credential.live_connection
    if issued_over and issued_over.connectionless:
        return ask_for_policy(request, policy, None)
    usable = issued_over and find_chosen(tenant, None, str(issued_over.pk))
    if usable is None:
        return refuse_to_ask(request, policy)
    return ask_for_policy(request, policy, usable)
