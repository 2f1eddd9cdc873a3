"""Credentials in the wallet API: the holder's side."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.negotiation import JSONParser
from agency.api.openapi import examples
from agency.api.pagination import parameters
from agency.api.views import get_or_404, heavy, or_404
from connections.api import links
from connections.models import Connection
from credentials.api.definitions import DEFINITION_ID, VALUES
from credentials.api.issuer import CREDENTIAL, of, with_parties
from credentials.api.serializers import (
    ConnectionCredentialQuery,
    CounterProposalParameters,
    CredentialContract,
    CredentialDataParameters,
    CredentialProposalParameters,
    CredentialQuery,
)
from credentials.issue_credential import messages
from credentials.models import Credential
from wallets.api.wallets import WalletView

PROPOSED = OpenApiExample(
    "A proposed credential",
    {
        "credentialId": examples.CREDENTIAL_OF_WALLET,
        "state": "Proposed",
        "connectionId": examples.CONNECTION_OF_WALLET,
        "definitionId": DEFINITION_ID,
        "issuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "IssuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "proposal": {
            "comment": "For my application",
            "definitionId": DEFINITION_ID,
            "credentialValues": VALUES,
        },
    },
    response_only=True,
)


@extend_schema(tags=["Wallet credentials"])
class WalletCredentials(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @property
    def rows(self):
        return of(self.wallet)

    @extend_schema(
        operation_id="listWalletCredentials",
        summary="List offers and credentials, newest first",
        parameters=parameters(CredentialQuery),
        responses=CredentialContract(many=True),
        examples=[CREDENTIAL],
    )
    def list(self, request, walletId):
        return self.list_response(CredentialContract, self.rows, CredentialQuery)

    @extend_schema(
        operation_id="listCredentialsForConnectionId",
        summary="List offers and credentials of one connection",
        parameters=parameters(ConnectionCredentialQuery),
        responses=CredentialContract(many=True),
        examples=[CREDENTIAL],
    )
    def list_of_connection(self, request, walletId, connectionId):
        rows = self.rows.filter(connection__connection_id=connectionId)
        return self.list_response(CredentialContract, rows, ConnectionCredentialQuery)

    @extend_schema(
        operation_id="proposeCredential",
        summary="Tell a connection which credential is wanted",
        description="The issuer may offer it, offer another one, or decline.",
        request={"application/json": CredentialProposalParameters},
        responses=CredentialContract,
        examples=[
            PROPOSED,
            OpenApiExample(
                "A proposal",
                {
                    "definitionId": DEFINITION_ID,
                    "credentialValues": VALUES,
                    "comment": "For my application",
                },
                request_only=True,
            ),
        ],
    )
    def propose(self, request, walletId, connectionId):
        wallet = self.wallet
        connections = wallet.connections.filter(connectionless=False).select_related(
            "my_key"
        )
        connection = or_404(
            connections.filter(connection_id=connectionId).first(), Connection
        )
        body = self.parse_body(CredentialProposalParameters)
        proposed = self.perform(Credential.propose, connection, body)
        return self.to_response(CredentialContract, get_or_404(self.rows, proposed.pk))

    @extend_schema(
        operation_id="counterCredentialOffer",
        summary="Answer an offer by saying what is wanted instead",
        description="What the body leaves out stays as offered. The issuer may offer again.",
        request={"application/json": CounterProposalParameters},
        responses=CredentialContract,
        examples=[
            PROPOSED,
            OpenApiExample(
                "Another value",
                {"credentialValues": VALUES, "comment": "Wrong year"},
                request_only=True,
            ),
        ],
    )
    def counter(self, request, walletId, credentialId):
        body = self.parse_body(CounterProposalParameters)
        credential = get_or_404(with_parties(self.rows), credentialId)
        self.perform(credential.counter, body)
        return self.to_response(
            CredentialContract, get_or_404(self.rows, credential.pk)
        )

    @extend_schema(
        operation_id="getWalletCredential",
        summary="Read an offer or credential",
        parameters=[PREFER],
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    def retrieve(self, request, walletId, credentialId):
        return self.wait_for_change(
            CredentialContract, lambda: get_or_404(self.rows, credentialId)
        )

    @extend_schema(
        operation_id="acceptCredentialOffer",
        summary="Accept an offer",
        request=None,
        responses=None,
    )
    @heavy
    def accept(self, request, walletId, credentialId):
        self.perform(get_or_404(with_parties(self.rows), credentialId).accept)
        return Response()

    @extend_schema(
        operation_id="acceptCredential",
        summary="Accept an offer given as a link or data",
        request={"multipart/form-data": CredentialDataParameters},
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    @heavy
    def accept_data(self, request, walletId):
        wallet = self.wallet
        given = self.parse_body(CredentialDataParameters)["credentialData"]
        offer = links.resolve(given, "credentialData", messages.check_shared)
        taken = self.perform(Credential.take, wallet, offer)
        taken.connection.require_mine(taken)
        return self.to_response(CredentialContract, get_or_404(self.rows, taken.pk))

    @extend_schema(
        operation_id="declineCredentialOffer",
        summary="Decline an offer; both sides become Rejected",
        request=None,
        responses=None,
    )
    def decline(self, request, walletId, credentialId):
        self.perform(get_or_404(with_parties(self.rows), credentialId).decline)
        return Response()

    @extend_schema(
        operation_id="deleteWalletCredential",
        summary="Delete a credential; an open offer is declined first",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, credentialId):
        get_or_404(with_parties(self.rows), credentialId).remove()
        return Response()
