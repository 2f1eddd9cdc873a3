"""Credentials in the wallet API: the holder's side."""

from functools import partial

from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from connections.api import given_messages
from connections.api.exchanges import WalletExchangeView
from connections.api.serializers import DeclineParameters
from connections.protocols import connectionless
from core.api.long_poll import PREFER
from core.api.negotiation import JSONParser
from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import form_or_json, operation
from core.api.pagination import list_parameters
from core.api.views import heavy
from credentials import messages, revocation
from credentials.api.serializers import (
    ConnectionCredentialQuery,
    CounterProposalParameters,
    CredentialContract,
    CredentialDataParameters,
    CredentialProposalParameters,
    WalletCredentialQuery,
)
from credentials.issue_credential import handlers, proposals
from credentials.models import Credential
from credentials.openid4vci import holding
from credentials.openid4vci.issuers import SCHEMES, find_wallet_link
from credentials.removal import remove_credential
from tenants.models import Scope


class WalletCredentials(WalletExchangeView[Credential]):
    parser_classes = [MultiPartParser, FormParser, JSONParser]
    model = Credential
    held_role = Credential.Role.HOLDER
    contract = CredentialContract

    @operation(
        "listWalletCredentials",
        Scope.READ,
        response=CredentialContract(many=True),
        parameters=list_parameters(WalletCredentialQuery),
    )
    def list(self, request: Request, walletId: str) -> Response:
        return self.list_where(WalletCredentialQuery)

    @operation(
        "listCredentialsForConnectionId",
        Scope.READ,
        response=CredentialContract(many=True),
        parameters=list_parameters(ConnectionCredentialQuery),
    )
    def list_of_connection(
        self, request: Request, walletId: str, connectionId: str
    ) -> Response:
        return self.list_where(
            ConnectionCredentialQuery, connection__connection_id=connectionId
        )

    @operation(
        "proposeCredential",
        Scope.WALLETS,
        request={"application/json": CredentialProposalParameters},
        response=CredentialContract,
    )
    def propose(self, request: Request, walletId: str, connectionId: str) -> Response:
        connection = self.get_connection(connectionId)
        body = self.parse_body(CredentialProposalParameters)
        version, notes = body.pop("exchangeVersion", ""), notes_in(body)
        wish = {name: body[name] for name in body.keys() - notes.keys()}
        proposed = self.perform(proposals.propose, connection, wish, version, notes)
        return self.exchange_response(proposed.pk)

    @operation(
        "counterCredentialOffer",
        Scope.WALLETS,
        request={"application/json": CounterProposalParameters},
        response=CredentialContract,
    )
    def counter(self, request: Request, walletId: str, credentialId: str) -> Response:
        body = self.parse_body(CounterProposalParameters)
        credential = self.get_with_parties(credentialId)
        self.perform(proposals.counter_offer, credential, body)
        return self.exchange_response(credential.pk)

    @operation(
        "getWalletCredential",
        Scope.READ,
        response=CredentialContract,
        parameters=[PREFER],
    )
    def retrieve(self, request: Request, walletId: str, credentialId: str) -> Response:
        return self.wait_for_exchange(credentialId)

    @operation(
        "updateWalletCredential",
        Scope.WALLETS,
        request={"application/json": NotesParameters},
        response=CredentialContract,
    )
    def update(self, request: Request, walletId: str, credentialId: str) -> Response:
        return self.change_notes_of_exchange(credentialId)

    @operation("acceptCredentialOffer", Scope.WALLETS)
    @heavy
    def accept(self, request: Request, walletId: str, credentialId: str) -> Response:
        credential = self.get_with_parties(credentialId)
        self.perform(
            credential.accept,
            prepare=lambda: revocation.reserve_for_issuer(credential),
        )
        return self.changed_exchange(credentialId)

    @operation(
        "acceptCredential",
        Scope.WALLETS,
        request=form_or_json(CredentialDataParameters),
        response=CredentialContract,
    )
    @heavy
    def accept_data(self, request: Request, walletId: str) -> Response:
        wallet = self.wallet
        body = self.parse_body(CredentialDataParameters)
        given = body["credentialData"]
        if link := find_wallet_link(given, SCHEMES):
            code = body.get("transactionCode", "")
            # It commits by itself, and does nothing twice.
            accept = partial(holding.accept_link, wallet, link, code)
            found = self.perform(lambda credential: credential, prepare=accept)
            return self.exchange_response(found.pk)
        offer = given_messages.resolve_message(
            given, "credentialData", messages.check_shared_offer, wallet.tenant
        )
        taken = self.perform(handlers.accept_shared_offer, wallet, offer)
        # Only after the commit is it known whether another wallet was first.
        assert taken.connection, "it was accepted on its connection"
        connectionless.discard_if_beaten(taken.connection, taken)
        return self.exchange_response(taken.pk)

    @operation(
        "declineCredentialOffer",
        Scope.WALLETS,
        request={"application/json": DeclineParameters},
    )
    def decline(self, request: Request, walletId: str, credentialId: str) -> Response:
        found = self.get_with_parties(credentialId)
        reason = self.parse_body(DeclineParameters).get("reason", "")
        self.perform(found.decline, reason)
        return self.changed_exchange(credentialId)

    @operation("deleteWalletCredential", Scope.WALLETS)
    def destroy(self, request: Request, walletId: str, credentialId: str) -> Response:
        remove_credential(self.get_with_parties(credentialId))
        return Response()
