"""Verifications in the wallet API: the prover's side."""

from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api import dialects
from agency.api.long_poll import PREFER
from agency.api.negotiation import JSONParser
from agency.api.openapi.operation import operation
from agency.api.pagination import list_parameters
from agency.api.views import get_or_404, heavy, or_404
from connections.api import links
from connections.models import Connection
from connections.protocols import connectionless
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
from verifications.api.verifier import of, with_parties
from verifications.models import Verification
from verifications.present_proof import messages
from verifications.proofs import proof_policy
from wallets.api.wallets import WalletView


class WalletVerifications(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @property
    def rows(self):
        return of(self.wallet)

    @operation(
        "listWalletVerifications",
        response=VerificationContract(many=True),
        parameters=list_parameters(WalletVerificationQuery),
    )
    def list(self, request, walletId):
        return self.list_response(
            VerificationContract, self.rows, WalletVerificationQuery
        )

    @operation(
        "listVerificationsForConnection",
        response=VerificationContract(many=True),
        parameters=list_parameters(ConnectionVerificationQuery),
    )
    def list_of_connection(self, request, walletId, connectionId):
        rows = self.rows.filter(connection__connection_id=connectionId)
        return self.list_response(
            VerificationContract, rows, ConnectionVerificationQuery
        )

    @operation(
        "proposeVerification",
        request={"application/json": VerificationPolicyParameters},
        response=VerificationContract,
    )
    def propose(self, request, walletId, connectionId):
        wallet = self.wallet
        connections = wallet.connections.filter(connectionless=False).select_related(
            "my_key"
        )
        connection = or_404(
            connections.filter(connection_id=connectionId).first(), Connection
        )
        body = proof_policy.normalise(self.parse_body(VerificationPolicyParameters))
        proposed = self.perform(Verification.propose, connection, body)
        return self.to_response(
            VerificationContract, get_or_404(self.rows, proposed.pk)
        )

    @operation(
        "getWalletVerification", response=VerificationContract, parameters=[PREFER]
    )
    def retrieve(self, request, walletId, verificationId):
        return self.wait_for_change(
            VerificationContract, lambda: get_or_404(self.rows, verificationId)
        )

    @operation(
        "getAvailableCredentialsForVerification",
        response=VerificationPolicyCredentialContract(many=True),
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

    @operation(
        "getAvailableCredentialsForParameters",
        request={"multipart/form-data": VerificationDataParameters},
        response=VerificationPolicyCredentialContract(many=True),
    )
    def available_for_data(self, request, walletId):
        wallet = self.wallet
        return self.fitting(Verification.look_at(wallet, self.given()).available())

    @operation(
        "submitVerificationFromDataAutoSelect",
        request={"multipart/form-data": VerificationDataParameters},
    )
    @heavy
    def auto_select_data(self, request, walletId):
        wallet = self.wallet
        return self.answer_shared(wallet, self.given())

    def answer_shared(self, *given):
        verification = self.perform(Verification.answer_shared, *given)
        connectionless.require_first_responder(verification.connection, verification)
        return Response()

    @operation(
        "submitVerificationForParameters",
        request={"application/json": VerificationDataSelections},
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

    @operation("submitVerificationAutoSelect")
    @heavy
    def auto_select(self, request, walletId, verificationId):
        self.perform(get_or_404(with_parties(self.rows), verificationId).auto_select)
        return Response()

    @operation(
        "submitVerification",
        request={"application/json": SelectionParameters(many=True)},
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

    @operation("declineVerification")
    def decline(self, request, walletId, verificationId):
        self.perform(get_or_404(with_parties(self.rows), verificationId).decline)
        return Response()

    @operation("deleteWalletVerification")
    def destroy(self, request, walletId, verificationId):
        get_or_404(with_parties(self.rows), verificationId).remove()
        return Response()
