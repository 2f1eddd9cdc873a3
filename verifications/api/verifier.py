"""Verifications in the credentials API: the verifier's side."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from connections.api.exchanges import ExchangeView
from connections.api.link_options import create_with_options, read_link_options
from connections.api.serializers import OPENID4VP, out_of_band_options
from connections.exchange import PARTIES
from connections.models import Connection
from connections.protocols import public_dids
from core.api.long_poll import PREFER
from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import get_or_404
from core.errors import Conflict
from tenants.models import Notes, Scope, Tenant
from verifications.api.serializers import (
    NotedLinkParameters,
    NotedPolicyParameters,
    SharedPolicyParameters,
    VerificationContract,
    VerificationQuery,
    VerificationResult,
    as_uuid,
)
from verifications.models import Verification, VerificationPolicy
from verifications.openid4vp import requests as openid4vp
from verifications.present_proof import verifier
from verifications.proofs import proof_policy
from verifications.proofs.policy import Policy
from wallets.models import Wallet


def request_function(
    tenant: Tenant,
    *,
    link_options: Mapping[str, Any],
    policy: Policy,
    policy_id: UUID | None = None,
    connection: Connection | None = None,
    notes: Notes | None = None,
) -> Callable[[], Verification]:
    """Return a function that asks over a connection or, without one, by a link.

    A function, because its caller runs it in a transaction with more: perform() stores
    the Idempotency-Key in it, the studio an audit entry.

    link_options: valid ExchangeLinkParameters. policy: a Policy.
    """
    if connection:
        return partial(verifier.send_request, connection, policy, policy_id, notes)
    wallet = Wallet.of_organization(tenant)
    if link_options.get("protocol") == OPENID4VP:
        ask = partial(openid4vp.send_request_by_link, wallet, policy, policy_id, notes)
        return partial(
            create_with_options, ask, read_link_options(tenant, link_options)
        )
    if link_options.get("usePublicDid"):
        public_dids.require_resolvable_did(wallet)
    share = partial(
        verifier.send_request_by_link,
        wallet,
        policy,
        policy_id,
        options=out_of_band_options(link_options),
        exchange_version=link_options.get("exchangeVersion", ""),
        attachment_format=link_options.get("attachmentFormat", ""),
        notes=notes,
    )
    return partial(create_with_options, share, read_link_options(tenant, link_options))


class Verifications(ExchangeView[Verification]):
    model = Verification
    contract = VerificationContract

    def get_policy(self, policy_id: str) -> VerificationPolicy:
        policies = VerificationPolicy.objects.filter(tenant=self.tenant)
        return get_or_404(policies, policy_id)

    def send_request(
        self,
        connection_id: str,
        policy: Policy,
        policy_id: UUID | None = None,
        notes: Notes | None = None,
    ) -> Response:
        """policy: a Policy. policy_id: of the stored one, if it is one."""
        connection = self.get_connection(connection_id)
        sent = self.perform(verifier.send_request, connection, policy, policy_id, notes)
        return self.exchange_response(sent.pk)

    def share_request(
        self,
        link_options: Mapping[str, Any],
        policy: Policy,
        policy_id: UUID | None = None,
    ) -> Response:
        """link_options: valid NotedLinkParameters. policy: a Policy."""
        share = request_function(
            self.tenant,
            link_options=link_options,
            policy=policy,
            policy_id=policy_id,
            notes=notes_in(link_options),
        )
        return self.exchange_response(self.perform(share).pk)

    @operation(
        "sendVerificationFromPolicy",
        Scope.VERIFY,
        request=NotesParameters,
        response=VerificationContract,
    )
    def send_policy(
        self, request: Request, policyId: str, connectionId: str
    ) -> Response:
        notes = notes_in(self.parse_body(NotesParameters))
        stored = self.get_policy(policyId)
        policy = stored.unsealed_policy()
        return self.send_request(connectionId, policy, stored.pk, notes)

    @operation(
        "sendVerificationFromParameters",
        Scope.VERIFY,
        request=NotedPolicyParameters,
        response=VerificationContract,
    )
    def send_parameters(self, request: Request, connectionId: str) -> Response:
        given = self.parse_body(NotedPolicyParameters)
        policy = proof_policy.normalise(given)
        return self.send_request(connectionId, policy, notes=notes_in(given))

    @operation(
        "replaceVerificationFromParameters",
        Scope.VERIFY,
        request=NotedPolicyParameters,
        response=VerificationContract,
    )
    def put_parameters(self, request: Request, connectionId: str) -> Response:
        return self.send_parameters(request, connectionId)

    @operation(
        "sendVerificationFromProposal", Scope.VERIFY, response=VerificationContract
    )
    def answer_proposal(
        self, request: Request, policyId: str, connectionId: str
    ) -> Response:
        connection = self.get_connection(connectionId)
        answered = self.perform(self.answer_with_policy, connection, policyId)
        return self.exchange_response(answered.pk)

    def answer_with_policy(
        self, connection: Connection, policy_id: str
    ) -> Verification:
        """Answer the proposal of this id, or the newest with the policy of this id.

        Return the verification. Called by perform(), so a repeated call does not answer
        the next proposal. 404 for an unknown id, 409 `no_proposal`, `wrong_state`.
        """
        proposals = self.rows.filter(
            connection=connection, role="verifier"
        ).select_related(*PARTIES)
        proposed = proposals.filter(pk=as_uuid(policy_id)).first()
        if proposed:
            verifier.answer_proposal(proposed)
        else:
            stored = self.get_policy(policy_id)
            waiting = proposals.filter(state=Verification.State.PROPOSED)
            proposed = waiting.order_by("-pk").first()
            if not proposed:
                raise Conflict(
                    "no_proposal",
                    "This connection has no proposal that waits for an answer.",
                )
            verifier.answer_proposal(proposed, stored.unsealed_policy(), stored.pk)
        return proposed

    @operation(
        "createVerificationFromPolicy",
        Scope.VERIFY,
        request=NotedLinkParameters,
        response=VerificationContract,
    )
    def share_policy(self, request: Request, policyId: str) -> Response:
        given = self.parse_body(NotedLinkParameters)
        stored = self.get_policy(policyId)
        return self.share_request(given, stored.unsealed_policy(), stored.pk)

    @operation(
        "createVerificationFromParameters",
        Scope.VERIFY,
        request=SharedPolicyParameters,
        response=VerificationContract,
    )
    def share_parameters(self, request: Request) -> Response:
        given = self.parse_body(SharedPolicyParameters)
        return self.share_request(given, proof_policy.normalise(given))

    @operation(
        "listVerifications",
        Scope.READ,
        response=VerificationContract(many=True),
        parameters=list_parameters(VerificationQuery),
    )
    def list(self, request: Request) -> Response:
        rows = self.rows_of_role(Verification.Role.VERIFIER)
        return self.list_response(VerificationContract, rows, VerificationQuery)

    @operation(
        "getVerification",
        Scope.READ,
        response=VerificationContract,
        parameters=[PREFER],
    )
    def retrieve(self, request: Request, verificationId: str) -> Response:
        return self.wait_for_exchange(verificationId)

    @operation(
        "updateVerification",
        Scope.VERIFY,
        request=NotesParameters,
        response=VerificationContract,
    )
    def update(self, request: Request, verificationId: str) -> Response:
        return self.change_notes_of_exchange(verificationId)

    @operation("deleteVerification", Scope.VERIFY)
    def destroy(self, request: Request, verificationId: str) -> Response:
        self.get_with_parties(verificationId).remove()
        return Response()

    @operation("verifyVerification", Scope.READ, response=VerificationResult)
    def verify(self, request: Request, verificationId: str) -> Response:
        return self.to_response(VerificationResult, self.get_exchange(verificationId))
