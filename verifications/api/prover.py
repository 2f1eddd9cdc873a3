"""Verifications in the wallet API: the prover's side."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api import dialects
from agency.api.long_poll import PREFER
from agency.api.negotiation import JSONParser
from agency.api.openapi import examples
from agency.api.pagination import parameters
from agency.api.views import get_or_404, heavy, or_404
from connections.api import links
from connections.models import Connection
from verifications.api.policies import WANTED
from verifications.api.serializers import (
    ConnectionVerificationQuery,
    SelectionParameters,
    VerificationContract,
    VerificationDataParameters,
    VerificationDataSelections,
    VerificationPolicyCredentialContract,
    VerificationPolicyParameters,
    WalletVerificationQuery,
)
from verifications.api.verifier import VERIFICATION, of, with_parties
from verifications.models import Verification
from verifications.present_proof import messages
from verifications.proofs import policy
from wallets.api.wallets import WalletView

CHOICE = {
    "policyName": "Degree",
    "credentialId": examples.CREDENTIAL_OF_WALLET,
    "hidden": False,
}


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
        return self.list_response(
            VerificationContract, self.rows, WalletVerificationQuery
        )

    @extend_schema(
        operation_id="listVerificationsForConnection",
        summary="List proof requests of one connection",
        parameters=parameters(ConnectionVerificationQuery),
        responses=VerificationContract(many=True),
        examples=[VERIFICATION],
    )
    def list_of_connection(self, request, walletId, connectionId):
        rows = self.rows.filter(connection__connection_id=connectionId)
        return self.list_response(
            VerificationContract, rows, ConnectionVerificationQuery
        )

    @extend_schema(
        operation_id="proposeVerification",
        summary="Offer a connection to prove something, if it asks for it",
        request={"application/json": VerificationPolicyParameters},
        responses=VerificationContract,
        examples=[WANTED, VERIFICATION],
    )
    def propose(self, request, walletId, connectionId):
        wallet = self.wallet
        connections = wallet.connections.filter(connectionless=False).select_related(
            "my_key"
        )
        connection = or_404(
            connections.filter(connection_id=connectionId).first(), Connection
        )
        body = policy.normalise(self.parse_body(VerificationPolicyParameters))
        proposed = self.perform(Verification.propose, connection, body)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, proposed.pk)
        )

    @extend_schema(
        operation_id="getWalletVerification",
        summary="Read a proof request",
        parameters=[PREFER],
        responses=VerificationContract,
        examples=[VERIFICATION],
    )
    def retrieve(self, request, walletId, verificationId):
        return self.wait_for_change(
            VerificationContract, lambda: get_or_404(self.rows, verificationId)
        )

    @extend_schema(
        operation_id="getAvailableCredentialsForVerification",
        summary="What the wallet could answer with",
        description="One array; with the header X-Service-Subscription-Key an object "
        "`{attributes, predicates}`.",
        responses=VerificationPolicyCredentialContract(many=True),
    )
    def available(self, request, walletId, verificationId):
        return self.fitting(
            get_or_404(with_parties(self.rows), verificationId).available()
        )

    def fitting(self, offered):
        parts = {False: [], True: []}
        for item, credentials in offered:
            parts[item.is_predicate].append((item, credentials))
        attributes, predicates = (
            VerificationPolicyCredentialContract(
                part, many=True, context=self.context
            ).data
            for part in (parts[False], parts[True])
        )
        return Response(
            dialects.available_credentials(self.request, attributes, predicates)
        )

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
    @heavy
    def auto_select_data(self, request, walletId):
        wallet = self.wallet
        return self.answer_shared(wallet, self.given())

    def answer_shared(self, *given):
        verification = self.perform(Verification.answer_shared, *given)
        verification.connection.require_mine(verification)
        return Response()

    @extend_schema(
        operation_id="submitVerificationForParameters",
        summary="Answer a link with chosen credentials",
        request={"application/json": VerificationDataSelections},
        responses=None,
        examples=[
            OpenApiExample(
                "A choice",
                {
                    "verificationData": examples.REQUEST_LINK_FOR_A_CHOICE,
                    "parameters": [CHOICE],
                },
                request_only=True,
            )
        ],
    )
    @heavy
    def submit_data(self, request, walletId):
        wallet = self.wallet
        body = self.parse_body(VerificationDataSelections)
        message = self.read(body["verificationData"])
        return self.answer_shared(wallet, message, body.get("parameters", []))

    def given(self):
        return self.read(
            self.parse_body(VerificationDataParameters)["verificationData"]
        )

    def read(self, data):
        return links.resolve(data, "verificationData", messages.check_shared)

    @extend_schema(
        operation_id="submitVerificationAutoSelect",
        summary="Answer with the first credential that fits each item",
        request=None,
        responses=None,
    )
    @heavy
    def auto_select(self, request, walletId, verificationId):
        self.perform(get_or_404(with_parties(self.rows), verificationId).auto_select)
        return Response()

    @extend_schema(
        operation_id="submitVerification",
        summary="Answer with chosen credentials",
        request={"application/json": SelectionParameters(many=True)},
        responses=None,
        examples=[
            OpenApiExample(
                "A choice",
                CHOICE,
                request_only=True,
            )
        ],
    )
    @heavy
    def submit(self, request, walletId, verificationId):
        serializer = SelectionParameters(
            data=request.data or [], many=True, max_length=100
        )
        self.name_ignored_members(serializer)
        serializer.is_valid(raise_exception=True)
        verification = get_or_404(with_parties(self.rows), verificationId)
        self.perform(verification.submit, serializer.validated_data)
        return Response()

    @extend_schema(
        operation_id="declineVerification",
        summary="Decline a proof request; both sides become Rejected",
        request=None,
        responses=None,
    )
    def decline(self, request, walletId, verificationId):
        self.perform(get_or_404(with_parties(self.rows), verificationId).decline)
        return Response()

    @extend_schema(
        operation_id="deleteWalletVerification",
        summary="Delete a proof request; an open one is declined first",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, verificationId):
        get_or_404(with_parties(self.rows), verificationId).remove()
        return Response()
