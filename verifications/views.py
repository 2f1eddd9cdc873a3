"""Policies and verifications in the credentials API and in the wallet API."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency import dialects
from agency.api import View, find, found
from agency.errors import Conflict
from agency.json_only import JSONParser
from agency.listing import parameters
from agency.waiting import PREFER
from connections import links
from connections.models import Connection
from connections.serializers import ExchangeLinkParameters, terms
from credentials.models import organization
from verifications import policy, protocol
from verifications.models import Verification, VerificationPolicy
from verifications.serializers import (
    ConnectionVerificationQuery,
    SelectionParameters,
    SharedPolicyParameters,
    VerificationContract,
    VerificationDataParameters,
    VerificationDataSelections,
    VerificationPolicyContract,
    VerificationPolicyCredentialContract,
    VerificationPolicyParameters,
    VerificationPolicyQuery,
    VerificationQuery,
    VerificationResult,
    WalletVerificationQuery,
    as_uuid,
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
BY_OUT_OF_BAND = OpenApiExample(
    "Out of band", {"protocol": "out-of-band", "goalCode": "request-proof"}, request_only=True
)
STORED = OpenApiExample(
    "A stored policy",
    {"policyId": "0196f3a3-3333-7000-8000-000000000001", **POLICY},
    response_only=True,
)
CHOICE = {
    "policyName": "Name of the dog",
    "credentialId": "0196f3a2-2222-7000-8000-000000000001",
    "hidden": False,
}
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
        created = self.act(VerificationPolicy.create, self.tenant, body)
        return self.shown(VerificationPolicyContract, created)

    @extend_schema(
        operation_id="listVerificationPolicies",
        summary="List policies, newest first",
        parameters=parameters(VerificationPolicyQuery),
        responses=VerificationPolicyContract(many=True),
        examples=[STORED],
    )
    def list(self, request):
        return self.listed(VerificationPolicyContract, self.rows, VerificationPolicyQuery)

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
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Verification.objects.filter(wallet=wallet).select_related("connection")


@extend_schema(tags=["Verifications"])
class Verifications(View):
    @property
    def rows(self):
        asked = Verification.objects.filter(tenant=self.tenant, wallet__is_organization=True)
        return asked.select_related("connection")

    def connection(self, connection_id):
        rows = Connection.objects.filter(tenant=self.tenant, wallet__is_organization=True)
        rows = rows.filter(connection_id=connection_id, connectionless=False)
        return found(rows.select_related("wallet", "my_key").first(), Connection)

    def sent(self, connection_id, body, policy_id=None):
        connection = self.connection(connection_id)
        verification = self.act(Verification.send, connection, body, policy_id)
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
        operation_id="sendVerificationFromProposal",
        summary="Ask for what a connection has proposed to prove",
        description="`policyId` is the id of the proposed verification. The id of a stored policy "
        "answers the newest proposal of the connection with that policy instead.",
        request=None,
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def answer_proposal(self, request, policyId, connectionId):
        answered = self.act(self.answered, self.connection(connectionId), policyId)
        return self.shown(VerificationContract, find(self.rows, answered.pk))

    def answered(self, connection, policy_id):
        proposals = with_parties(self.rows).filter(connection=connection, role="verifier")
        proposed = proposals.filter(pk=as_uuid(policy_id)).first()
        if proposed:
            proposed.answer()
        else:
            stored = find(VerificationPolicy.objects.filter(tenant=self.tenant), policy_id)
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
        given = self.parsed(ExchangeLinkParameters)
        stored = find(VerificationPolicy.objects.filter(tenant=self.tenant), policyId)
        return self.shared(stored.shown(), stored.pk, terms(given))

    @extend_schema(
        operation_id="createVerificationFromParameters",
        summary="Ask for a policy given here by a link",
        request=SharedPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def share_parameters(self, request):
        given = self.parsed(SharedPolicyParameters)
        return self.shared(policy.normalise(given), None, terms(given))

    def shared(self, *wanted):
        wallet = organization(self.tenant)
        verification = self.act(Verification.send_by_link, wallet, *wanted)
        return self.shown(VerificationContract, find(self.rows, verification.pk))

    @extend_schema(
        operation_id="listVerifications",
        summary="List verifications, newest first",
        parameters=parameters(VerificationQuery),
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list(self, request):
        return self.listed(VerificationContract, of(organization(self.tenant)), VerificationQuery)

    @extend_schema(
        operation_id="getVerification",
        summary="Read a verification and its result",
        parameters=[PREFER],
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, verificationId):
        return self.settled(VerificationContract, lambda: find(self.rows, verificationId))

    @extend_schema(
        operation_id="deleteVerification",
        summary="Delete a verification; an open one is withdrawn first",
        request=None,
        responses=None,
    )
    def destroy(self, request, verificationId):
        find(with_parties(self.rows), verificationId).remove()
        return Response()

    @extend_schema(
        operation_id="verifyVerification",
        summary="The result (proofs are verified when they arrive)",
        deprecated=True,
        responses=VerificationResult,
    )
    def verify(self, request, verificationId):
        return self.shown(VerificationResult, find(self.rows, verificationId))


def newest_proposal(rows):
    proposed = rows.filter(state=Verification.State.PROPOSED).order_by("-pk").first()
    if not proposed:
        raise Conflict("no_proposal", "This connection has no proposal that waits for an answer.")
    return proposed


@extend_schema(tags=["Wallet verifications"])
class WalletVerifications(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @property
    def rows(self):
        return of(self.wallet)

    @extend_schema(
        operation_id="listWalletVerifications",
        summary="List proof requests, newest first",
        parameters=parameters(WalletVerificationQuery),
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list(self, request, walletId):
        return self.listed(VerificationContract, self.rows, WalletVerificationQuery)

    @extend_schema(
        operation_id="listVerificationsForConnection",
        summary="List proof requests of one connection",
        parameters=parameters(ConnectionVerificationQuery),
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list_of_connection(self, request, walletId, connectionId):
        rows = self.rows.filter(connection__connection_id=connectionId)
        return self.listed(VerificationContract, rows, ConnectionVerificationQuery)

    @extend_schema(
        operation_id="proposeVerification",
        summary="Offer a connection to prove something, if it asks for it",
        request=VerificationPolicyParameters,
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def propose(self, request, walletId, connectionId):
        wallet = self.wallet
        connections = wallet.connections.filter(connectionless=False).select_related("my_key")
        connection = found(connections.filter(connection_id=connectionId).first(), Connection)
        body = policy.normalise(self.parsed(VerificationPolicyParameters))
        proposed = self.act(Verification.propose, connection, body)
        return self.shown(VerificationContract, find(self.rows, proposed.pk))

    @extend_schema(
        operation_id="getWalletVerification",
        summary="Read a proof request",
        parameters=[PREFER],
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, walletId, verificationId):
        return self.settled(VerificationContract, lambda: find(self.rows, verificationId))

    @extend_schema(
        operation_id="getAvailableCredentialsForVerification",
        summary="What the wallet could answer with",
        description="One array; with the header X-Service-Subscription-Key an object "
        "`{attributes, predicates}`.",
        responses=VerificationPolicyCredentialContract(many=True),
    )
    def available(self, request, walletId, verificationId):
        return self.fitting(find(with_parties(self.rows), verificationId).available())

    def fitting(self, offered):
        parts = {False: [], True: []}
        for item, credentials in offered:
            parts[item.is_predicate].append((item, credentials))
        attributes, predicates = (
            VerificationPolicyCredentialContract(part, many=True, context=self.context).data
            for part in (parts[False], parts[True])
        )
        return Response(dialects.available_credentials(self.request, attributes, predicates))

    @extend_schema(
        operation_id="getAvailableCredentialsForParameters",
        summary="What the wallet could answer a link with; takes nothing",
        request={"multipart/form-data": VerificationDataParameters},
        responses=VerificationPolicyCredentialContract(many=True),
    )
    def available_for_data(self, request, walletId):
        wallet = self.wallet
        return self.fitting(Verification.look_at(wallet, self.given()).available())

    @extend_schema(
        operation_id="submitVerificationFromDataAutoSelect",
        summary="Answer a link with the first credential that fits each item",
        request={"multipart/form-data": VerificationDataParameters},
        responses=None,
    )
    def auto_select_data(self, request, walletId):
        wallet = self.wallet
        return self.answer_shared(wallet, self.given())

    def answer_shared(self, *given):
        verification = self.act(Verification.answer_shared, *given)
        verification.connection.require_mine(verification)
        return Response()

    @extend_schema(
        operation_id="submitVerificationForParameters",
        summary="Answer a link with chosen credentials",
        request=VerificationDataSelections,
        responses=None,
        examples=[
            OpenApiExample(
                "A choice",
                {"verificationData": "https://agency.example/i/3q2-7w", "parameters": [CHOICE]},
                request_only=True,
            )
        ],
    )
    def submit_data(self, request, walletId):
        wallet = self.wallet
        body = self.parsed(VerificationDataSelections)
        message = self.read(body["verificationData"])
        return self.answer_shared(wallet, message, body.get("parameters", []))

    def given(self):
        return self.read(self.parsed(VerificationDataParameters)["verificationData"])

    def read(self, data):
        return links.resolve(data, "verificationData", protocol.check_shared)

    @extend_schema(
        operation_id="submitVerificationAutoSelect",
        summary="Answer with the first credential that fits each item",
        request=None,
        responses=None,
    )
    def auto_select(self, request, walletId, verificationId):
        self.act(find(with_parties(self.rows), verificationId).auto_select)
        return Response()

    @extend_schema(
        operation_id="submitVerification",
        summary="Answer with chosen credentials",
        request=SelectionParameters(many=True),
        responses=None,
        examples=[
            OpenApiExample(
                "A choice",
                CHOICE,
                request_only=True,
            )
        ],
    )
    def submit(self, request, walletId, verificationId):
        serializer = SelectionParameters(data=request.data or [], many=True, max_length=100)
        serializer.is_valid(raise_exception=True)
        verification = find(with_parties(self.rows), verificationId)
        self.act(verification.submit, serializer.validated_data)
        return Response()

    @extend_schema(
        operation_id="declineVerification",
        summary="Decline a proof request; both sides become Rejected",
        request=None,
        responses=None,
    )
    def decline(self, request, walletId, verificationId):
        self.act(find(with_parties(self.rows), verificationId).decline)
        return Response()

    @extend_schema(
        operation_id="deleteWalletVerification",
        summary="Delete a proof request; an open one is declined first",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, verificationId):
        find(with_parties(self.rows), verificationId).remove()
        return Response()
