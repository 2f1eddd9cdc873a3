"""Verifications in the credentials API: the verifier's side."""

from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.openapi.operation import operation
from agency.api.pagination import list_parameters
from agency.api.views import View, get_or_404, or_404
from agency.core.errors import Conflict
from connections.api.serializers import ExchangeLinkParameters, terms
from connections.models import Connection
from credentials.models.schema import organization_wallet
from verifications.api.serializers import (
    SharedPolicyParameters,
    VerificationContract,
    VerificationPolicyParameters,
    VerificationQuery,
    VerificationResult,
    as_uuid,
)
from verifications.models import Verification, VerificationPolicy
from verifications.proofs import proof_policy


def with_parties(rows):
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Verification.objects.filter(wallet=wallet).select_related("connection")


class Verifications(View):
    @property
    def rows(self):
        asked = Verification.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return asked.select_related("connection")

    def connection(self, connection_id):
        rows = Connection.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        rows = rows.filter(connection_id=connection_id, connectionless=False)
        return or_404(rows.select_related("wallet", "my_key").first(), Connection)

    def sent(self, connection_id, body, policy_id=None):
        connection = self.connection(connection_id)
        verification = self.perform(Verification.send, connection, body, policy_id)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, verification.pk)
        )

    @operation("sendVerificationFromPolicy", response=VerificationContract)
    def send_policy(self, request, policyId, connectionId):
        stored = get_or_404(
            VerificationPolicy.objects.filter(tenant=self.tenant), policyId
        )
        return self.sent(connectionId, stored.shown(), stored.pk)

    @operation(
        "sendVerificationFromParameters",
        request=VerificationPolicyParameters,
        response=VerificationContract,
    )
    def send_parameters(self, request, connectionId):
        body = proof_policy.normalise(self.parse_body(VerificationPolicyParameters))
        return self.sent(connectionId, body)

    @operation(
        "replaceVerificationFromParameters",
        request=VerificationPolicyParameters,
        response=VerificationContract,
    )
    def put_parameters(self, request, connectionId):
        return self.send_parameters(request, connectionId)

    @operation("sendVerificationFromProposal", response=VerificationContract)
    def answer_proposal(self, request, policyId, connectionId):
        answered = self.perform(self.answered, self.connection(connectionId), policyId)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, answered.pk)
        )

    def answered(self, connection, policy_id):
        proposals = with_parties(self.rows).filter(
            connection=connection, role="verifier"
        )
        proposed = proposals.filter(pk=as_uuid(policy_id)).first()
        if proposed:
            proposed.answer()
        else:
            stored = get_or_404(
                VerificationPolicy.objects.filter(tenant=self.tenant), policy_id
            )
            proposed = newest_proposal(proposals)
            proposed.answer(stored.shown(), stored.pk)
        return proposed

    @operation(
        "createVerificationFromPolicy",
        request=ExchangeLinkParameters,
        response=VerificationContract,
    )
    def share_policy(self, request, policyId):
        given = self.parse_body(ExchangeLinkParameters)
        stored = get_or_404(
            VerificationPolicy.objects.filter(tenant=self.tenant), policyId
        )
        return self.shared(stored.shown(), stored.pk, terms(given))

    @operation(
        "createVerificationFromParameters",
        request=SharedPolicyParameters,
        response=VerificationContract,
    )
    def share_parameters(self, request):
        given = self.parse_body(SharedPolicyParameters)
        return self.shared(proof_policy.normalise(given), None, terms(given))

    def shared(self, *wanted):
        wallet = organization_wallet(self.tenant)
        verification = self.perform(Verification.send_by_link, wallet, *wanted)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, verification.pk)
        )

    @operation(
        "listVerifications",
        response=VerificationContract(many=True),
        parameters=list_parameters(VerificationQuery),
    )
    def list(self, request):
        return self.list_response(
            VerificationContract,
            of(organization_wallet(self.tenant)),
            VerificationQuery,
        )

    @operation("getVerification", response=VerificationContract, parameters=[PREFER])
    def retrieve(self, request, verificationId):
        return self.wait_for_change(
            VerificationContract, lambda: get_or_404(self.rows, verificationId)
        )

    @operation("deleteVerification")
    def destroy(self, request, verificationId):
        get_or_404(with_parties(self.rows), verificationId).remove()
        return Response()

    @operation("verifyVerification", response=VerificationResult)
    def verify(self, request, verificationId):
        return self.to_response(
            VerificationResult, get_or_404(self.rows, verificationId)
        )


def newest_proposal(rows):
    proposed = rows.filter(state=Verification.State.PROPOSED).order_by("-pk").first()
    if not proposed:
        raise Conflict(
            "no_proposal", "This connection has no proposal that waits for an answer."
        )
    return proposed
