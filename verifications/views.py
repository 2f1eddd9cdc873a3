"""Policies and verifications in the credentials API and in the wallet API."""

import uuid

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency import dialects
from agency.api import View, find, found
from connections.models import Connection
from verifications import policy
from verifications.models import Verification, VerificationPolicy
from verifications.serializers import (
    SelectionParameters,
    VerificationContract,
    VerificationPolicyContract,
    VerificationPolicyCredentialContract,
    VerificationPolicyParameters,
    VerificationQuery,
    VerificationResult,
)
from wallets.api import WalletView

POLICY = {
    "name": "Old enough",
    "version": "1.0.0",
    "attributes": [{"policyName": "Name of the dog", "attributeNames": ["name"]}],
    "predicates": [
        {
            "policyName": "Born before 2023",
            "attributeName": "year",
            "predicateType": "<",
            "predicateValue": 2023,
        }
    ],
}
WANTED = OpenApiExample("A policy", POLICY, request_only=True)
STORED = OpenApiExample(
    "A stored policy",
    {"policyId": "0196f3a3-3333-7000-8000-000000000001", **POLICY},
    response_only=True,
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
                "revealed": True,
                "selfAttested": False,
                "conditional": False,
            }
        },
        "policy": POLICY,
    },
    response_only=True,
)


@extend_schema(tags=["Policies"])
class VerificationPolicies(View):
    @property
    def rows(self):
        return VerificationPolicy.objects.filter(tenant=self.tenant)

    @extend_schema(
        operation_id="createVerificationPolicy",
        summary="Keep a policy",
        request=VerificationPolicyParameters,
        responses=VerificationPolicyContract,
        examples=[WANTED, STORED],
    )
    def create(self, request):
        body = self.parsed(VerificationPolicyParameters)
        created = VerificationPolicy.create(self.tenant, body)
        return self.shown(VerificationPolicyContract, created)

    @extend_schema(
        operation_id="listVerificationPolicies",
        summary="List policies, newest first",
        responses=VerificationPolicyContract(many=True),
        examples=[STORED],
    )
    def list(self, request):
        return self.listed(VerificationPolicyContract, self.rows)

    @extend_schema(
        operation_id="getVerificationPolicy",
        summary="Read a policy",
        responses=VerificationPolicyContract,
        examples=[STORED],
    )
    def retrieve(self, request, policyId):
        return self.shown(VerificationPolicyContract, find(self.rows, policyId))

    @extend_schema(
        operation_id="deleteVerificationPolicy",
        summary="Delete a policy; verifications sent from it stay",
        request=None,
        responses=None,
    )
    def destroy(self, request, policyId):
        find(self.rows, policyId).delete()
        return Response()


def with_parties(rows):
    return rows.select_related("connection__my_key", "wallet__tenant", "tenant__network")


def of_connection(rows, connection_id):
    return rows.filter(connection__connection_id=connection_id) if connection_id else rows


@extend_schema(tags=["Verifications"])
class Verifications(View):
    @property
    def rows(self):
        asked = Verification.objects.filter(tenant=self.tenant, wallet__is_organization=True)
        return with_parties(asked)

    def connection(self, connection_id):
        rows = Connection.objects.filter(tenant=self.tenant, wallet__is_organization=True)
        rows = rows.select_related("wallet", "my_key")
        return found(rows.filter(connection_id=connection_id).first(), Connection)

    def sent(self, connection_id, body, policy_id=None):
        verification = Verification.send(self.connection(connection_id), body, policy_id)
        return self.shown(VerificationContract, find(self.rows, verification.pk))

    @extend_schema(
        operation_id="sendVerificationFromPolicy",
        summary="Ask a connection for a stored policy",
        request=None,
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def send_policy(self, request, policyId, connectionId):
        stored = find(VerificationPolicy.objects.filter(tenant=self.tenant), policyId)
        return self.sent(connectionId, stored.shown(), stored.pk)

    @extend_schema(
        operation_id="sendVerificationFromParameters",
        summary="Ask a connection for a policy given here",
        request=VerificationPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def send_parameters(self, request, connectionId):
        body = policy.normalise(self.parsed(VerificationPolicyParameters))
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
        operation_id="listVerifications",
        summary="List verifications, newest first",
        parameters=[VerificationQuery],
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list(self, request):
        query = self.query(VerificationQuery)
        rows = of_connection(self.rows, query.get("connectionId"))
        if "definitionId" in query:
            rows = rows.filter(policy_id=as_uuid(query["definitionId"]))
        return self.listed(VerificationContract, rows)

    @extend_schema(
        operation_id="getVerification",
        summary="Read a verification and its result",
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, verificationId):
        return self.shown(VerificationContract, find(self.rows, verificationId))

    @extend_schema(
        operation_id="deleteVerification",
        summary="Delete a verification; an open one is withdrawn first",
        request=None,
        responses=None,
    )
    def destroy(self, request, verificationId):
        find(self.rows, verificationId).remove()
        return Response()

    @extend_schema(
        operation_id="verifyVerification",
        summary="The result (proofs are verified when they arrive)",
        deprecated=True,
        responses=VerificationResult,
    )
    def verify(self, request, verificationId):
        return self.shown(VerificationResult, find(self.rows, verificationId))


def as_uuid(text):
    """The UUID, or one that nothing has."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.UUID(int=0)


@extend_schema(tags=["Wallet verifications"])
class WalletVerifications(WalletView):
    @property
    def rows(self):
        return with_parties(Verification.objects.filter(wallet=self.wallet))

    @extend_schema(
        operation_id="listWalletVerifications",
        summary="List proof requests, newest first",
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list(self, request, walletId):
        return self.listed(VerificationContract, self.rows)

    @extend_schema(
        operation_id="listVerificationsForConnection",
        summary="List proof requests of one connection",
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list_of_connection(self, request, walletId, connectionId):
        return self.listed(VerificationContract, of_connection(self.rows, connectionId))

    @extend_schema(
        operation_id="getWalletVerification",
        summary="Read a proof request",
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, walletId, verificationId):
        return self.shown(VerificationContract, find(self.rows, verificationId))

    @extend_schema(
        operation_id="getAvailableCredentialsForVerification",
        summary="What the wallet could answer with",
        description="One array; with the header X-Service-Subscription-Key an object "
        "`{attributes, predicates}`.",
        responses=VerificationPolicyCredentialContract(many=True),
    )
    def available(self, request, walletId, verificationId):
        offered = find(self.rows, verificationId).available()
        parts = {False: [], True: []}
        for item, credentials in offered:
            parts[item.is_predicate].append((item, credentials))
        attributes, predicates = (
            VerificationPolicyCredentialContract(part, many=True, context=self.context).data
            for part in (parts[False], parts[True])
        )
        return Response(dialects.available_credentials(request, attributes, predicates))

    @extend_schema(
        operation_id="submitVerificationAutoSelect",
        summary="Answer with the first credential that fits each item",
        request=None,
        responses=None,
    )
    def auto_select(self, request, walletId, verificationId):
        find(self.rows, verificationId).auto_select()
        return Response()

    @extend_schema(
        operation_id="submitVerification",
        summary="Answer with chosen credentials",
        request=SelectionParameters(many=True),
        responses=None,
        examples=[
            OpenApiExample(
                "A choice",
                {
                    "policyName": "Name of the dog",
                    "credentialId": "0196f3a2-2222-7000-8000-000000000001",
                    "hidden": False,
                },
                request_only=True,
            )
        ],
    )
    def submit(self, request, walletId, verificationId):
        serializer = SelectionParameters(data=request.data or [], many=True, max_length=100)
        serializer.is_valid(raise_exception=True)
        find(self.rows, verificationId).submit(serializer.validated_data)
        return Response()

    @extend_schema(
        operation_id="declineVerification",
        summary="Decline a proof request; both sides become Rejected",
        request=None,
        responses=None,
    )
    def decline(self, request, walletId, verificationId):
        find(self.rows, verificationId).decline()
        return Response()

    @extend_schema(
        operation_id="deleteWalletVerification",
        summary="Delete a proof request; an open one is declined first",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, verificationId):
        find(self.rows, verificationId).remove()
        return Response()
