"""Verifications in the credentials API: the verifier's side."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404, or_404
from agency.core.errors import Conflict
from connections.api.serializers import ExchangeLinkParameters, terms
from connections.models import Connection
from credentials.models import organization
from verifications.api.policies import POLICY, WANTED
from verifications.api.serializers import (
    SharedPolicyParameters,
    VerificationContract,
    VerificationPolicyParameters,
    VerificationQuery,
    VerificationResult,
    as_uuid,
)
from verifications.models import Verification, VerificationPolicy
from verifications.proofs import policy

BY_OUT_OF_BAND = OpenApiExample(
    "Out of band",
    {"protocol": "out-of-band", "goalCode": "request-proof"},
    request_only=True,
)
VERIFICATION = OpenApiExample(
    "A valid proof",
    {
        "verificationId": "0196f3a4-4444-7000-8000-000000000001",
        "connectionId": "0196f3a1-1111-7000-8000-000000000001",
        "state": "Accepted",
        "createdAtUtc": "2026-01-31T08:00:00.000000Z",
        "updatedAtUtc": "2026-01-31T08:00:01.000000Z",
        "isValid": True,
        "verifiedAtUtc": "2026-01-31T08:00:01.000000Z",
        "proof": {
            "Name of the dog": {
                "name": "name",
                "value": "Rex",
                "attributes": {"name": "Rex"},
                "revealed": True,
                "selfAttested": False,
                "conditional": False,
            }
        },
        "policy": POLICY,
    },
    response_only=True,
)


def with_parties(rows):
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Verification.objects.filter(wallet=wallet).select_related("connection")


@extend_schema(tags=["Verifications"])
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

    @extend_schema(
        operation_id="sendVerificationFromPolicy",
        summary="Ask a connection for a stored policy",
        request=None,
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def send_policy(self, request, policyId, connectionId):
        stored = get_or_404(
            VerificationPolicy.objects.filter(tenant=self.tenant), policyId
        )
        return self.sent(connectionId, stored.shown(), stored.pk)

    @extend_schema(
        operation_id="sendVerificationFromParameters",
        summary="Ask a connection for a policy given here",
        request=VerificationPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def send_parameters(self, request, connectionId):
        body = policy.normalise(self.parse_body(VerificationPolicyParameters))
        return self.sent(connectionId, body)

    @extend_schema(
        operation_id="replaceVerificationFromParameters",
        summary="Ask a connection for a policy given here (same as POST)",
        request=VerificationPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def put_parameters(self, request, connectionId):
        return self.send_parameters(request, connectionId)

    @extend_schema(
        operation_id="sendVerificationFromProposal",
        summary="Ask for what a connection has proposed to prove",
        description="`policyId` is the id of the proposed verification. The id of a stored policy "
        "answers the newest proposal of the connection with that policy instead.",
        request=None,
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
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

    @extend_schema(
        operation_id="createVerificationFromPolicy",
        summary="Ask for a stored policy by a link",
        request=ExchangeLinkParameters,
        responses=VerificationContract,
        examples=[BY_OUT_OF_BAND, VERIFICATION],
    )
    def share_policy(self, request, policyId):
        given = self.parse_body(ExchangeLinkParameters)
        stored = get_or_404(
            VerificationPolicy.objects.filter(tenant=self.tenant), policyId
        )
        return self.shared(stored.shown(), stored.pk, terms(given))

    @extend_schema(
        operation_id="createVerificationFromParameters",
        summary="Ask for a policy given here by a link",
        request=SharedPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def share_parameters(self, request):
        given = self.parse_body(SharedPolicyParameters)
        return self.shared(policy.normalise(given), None, terms(given))

    def shared(self, *wanted):
        wallet = organization(self.tenant)
        verification = self.perform(Verification.send_by_link, wallet, *wanted)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, verification.pk)
        )

    @extend_schema(
        operation_id="listVerifications",
        summary="List verifications, newest first",
        parameters=parameters(VerificationQuery),
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list(self, request):
        return self.list_response(
            VerificationContract, of(organization(self.tenant)), VerificationQuery
        )

    @extend_schema(
        operation_id="getVerification",
        summary="Read a verification and its result",
        parameters=[PREFER],
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, verificationId):
        return self.wait_for_change(
            VerificationContract, lambda: get_or_404(self.rows, verificationId)
        )

    @extend_schema(
        operation_id="deleteVerification",
        summary="Delete a verification; an open one is withdrawn first",
        request=None,
        responses=None,
    )
    def destroy(self, request, verificationId):
        get_or_404(with_parties(self.rows), verificationId).remove()
        return Response()

    @extend_schema(
        operation_id="verifyVerification",
        summary="The result (proofs are verified when they arrive)",
        deprecated=True,
        responses=VerificationResult,
    )
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
