"""Verifications in the wallet API: the prover's side."""

from collections.abc import Iterable, Sequence
from functools import partial

from rest_framework import serializers
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from connections.api import given_messages
from connections.api.exchanges import WalletExchangeView
from connections.api.serializers import DeclineParameters
from connections.didcomm.message import Message
from connections.protocols import connectionless
from core.api import dialects, hints
from core.api.long_poll import PREFER
from core.api.negotiation import JSONParser
from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import form_or_json, operation
from core.api.pagination import list_parameters
from core.api.views import heavy
from credentials.models import Credential, CredentialFormat
from credentials.openid4vci.issuers import find_wallet_link
from tenants.models import Scope
from verifications import messages
from verifications.api.serializers import (
    AvailableCredentials,
    ConnectionVerificationQuery,
    ProposedPolicyParameters,
    SelectionParameters,
    VerificationContract,
    VerificationDataParameters,
    VerificationDataSelections,
    VerificationPolicyCredentialContract,
    WalletVerificationQuery,
)
from verifications.models import Verification
from verifications.openid4vp import presenting
from verifications.openid4vp.presenting import SCHEMES
from verifications.present_proof import prover
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import Item
from verifications.proofs.selection import Selection
from wallets.models import Wallet

OfferedItem = tuple[Item, list[Credential]]


class WalletVerifications(WalletExchangeView[Verification]):
    parser_classes = [MultiPartParser, FormParser, JSONParser]
    model = Verification
    held_role = Verification.Role.PROVER
    contract = VerificationContract

    @operation(
        "listWalletVerifications",
        Scope.READ,
        response=VerificationContract(many=True),
        parameters=list_parameters(WalletVerificationQuery),
    )
    def list(self, request: Request, walletId: str) -> Response:
        return self.list_where(WalletVerificationQuery)

    @operation(
        "listVerificationsForConnection",
        Scope.READ,
        response=VerificationContract(many=True),
        parameters=list_parameters(ConnectionVerificationQuery),
    )
    def list_of_connection(
        self, request: Request, walletId: str, connectionId: str
    ) -> Response:
        return self.list_where(
            ConnectionVerificationQuery, connection__connection_id=connectionId
        )

    @operation(
        "proposeVerification",
        Scope.WALLETS,
        request={"application/json": ProposedPolicyParameters},
        response=VerificationContract,
    )
    def propose(self, request: Request, walletId: str, connectionId: str) -> Response:
        connection = self.get_connection(connectionId)
        given = self.parse_body(ProposedPolicyParameters)
        policy = proof_policy.normalise(given)
        version = given.get("exchangeVersion", "")
        proposed = self.perform(
            prover.send_proposal, connection, policy, version, notes_in(given)
        )
        return self.exchange_response(proposed.pk)

    @operation(
        "getWalletVerification",
        Scope.READ,
        response=VerificationContract,
        parameters=[PREFER],
    )
    def retrieve(
        self, request: Request, walletId: str, verificationId: str
    ) -> Response:
        return self.wait_for_exchange(verificationId)

    @operation(
        "updateWalletVerification",
        Scope.WALLETS,
        request={"application/json": NotesParameters},
        response=VerificationContract,
    )
    def update(self, request: Request, walletId: str, verificationId: str) -> Response:
        return self.change_notes_of_exchange(verificationId)

    @operation(
        "getAvailableCredentialsForVerification",
        Scope.WALLETS,
        response=AvailableCredentials,
    )
    def available(
        self, request: Request, walletId: str, verificationId: str
    ) -> Response:
        return self.available_response(
            prover.find_available(self.get_with_parties(verificationId))
        )

    def available_response(self, available: Iterable[OfferedItem]) -> Response:
        """The items and the credentials that fit them, in the request's dialect.

        What fits a comparison tells the value: so readers alone do not get it.
        """
        shown = []  # the attributes, then the predicates
        for is_predicate in (False, True):
            pairs = [pair for pair in available if pair[0].is_predicate == is_predicate]
            shown.append(
                VerificationPolicyCredentialContract.show_all(pairs, self.context)
            )
        return self.data_response(dialects.available_credentials(self.request, *shown))

    @operation(
        "getAvailableCredentialsForParameters",
        Scope.WALLETS,
        request=form_or_json(VerificationDataParameters),
        response=AvailableCredentials,
    )
    @heavy
    def available_for_data(self, request: Request, walletId: str) -> Response:
        wallet = self.wallet
        body = self.parse_body(VerificationDataParameters)
        if link := find_wallet_link(body["verificationData"], SCHEMES):
            unsaved = presenting.preview(wallet, presenting.read_request(link))
        else:
            message = self.resolve_request(body["verificationData"])
            unsaved = prover.preview_shared_request(wallet, message)
        return self.available_response(prover.find_available(unsaved))

    @operation(
        "submitVerificationFromDataAutoSelect",
        Scope.WALLETS,
        request=form_or_json(VerificationDataParameters),
    )
    @heavy
    def auto_select_data(self, request: Request, walletId: str) -> Response:
        wallet = self.wallet
        given = self.parse_body(VerificationDataParameters)["verificationData"]
        if link := find_wallet_link(given, SCHEMES):
            return self.answer_link(wallet, link)
        return self.answer_shared(wallet, self.resolve_request(given))

    def answer_link(
        self,
        wallet: Wallet,
        link: str,
        selections: Sequence[Selection] | None = None,
    ) -> Response:
        # It commits by itself, and does nothing twice.
        answer = partial(presenting.answer_link, wallet, link, selections)
        answered = self.perform(lambda verification: verification, prepare=answer)
        return self.changed_exchange(answered.pk)

    def answer_shared(
        self,
        wallet: Wallet,
        message: Message,
        selections: Sequence[Selection] | None = None,
    ) -> Response:
        """The presentation is made before the transaction, which may be a long time."""
        verification = self.perform(
            prover.answer_shared_request,
            wallet,
            message,
            prepare=lambda: prover.prepare_shared_answer(wallet, message, selections),
        )
        # Only after the commit is it known whether another wallet was first.
        assert verification.connection, "it was accepted on its connection"
        connectionless.discard_if_beaten(verification.connection, verification)
        return self.changed_exchange(verification.pk)

    @operation(
        "submitVerificationForParameters",
        Scope.WALLETS,
        request={"application/json": VerificationDataSelections},
    )
    @heavy
    def submit_data(self, request: Request, walletId: str) -> Response:
        wallet = self.wallet
        body = self.parse_body(VerificationDataSelections)
        given, chosen = body["verificationData"], body.get("parameters", [])
        if link := find_wallet_link(given, SCHEMES):
            return self.answer_link(wallet, link, chosen)
        return self.answer_shared(wallet, self.resolve_request(given), chosen)

    def resolve_request(self, data: str) -> Message:
        """The request message in a link, base64 or JSON."""
        return given_messages.resolve_message(
            data, "verificationData", messages.check_shared_request, self.tenant
        )

    @operation("submitVerificationAutoSelect", Scope.WALLETS)
    @heavy
    def auto_select(
        self, request: Request, walletId: str, verificationId: str
    ) -> Response:
        return self.answer(self.get_with_parties(verificationId))

    def answer(
        self,
        verification: Verification,
        selections: Sequence[Selection] | None = None,
    ) -> Response:
        if verification.format == CredentialFormat.SD_JWT:
            answer = partial(presenting.answer_again, verification, selections)
            self.perform(lambda answered: answered, prepare=answer)
            return self.changed_exchange(verification.pk)
        self.perform(
            prover.send_answer,
            verification,
            prepare=lambda: prover.prepare_answer(verification, selections),
        )
        return self.changed_exchange(verification.pk)

    @operation(
        "submitVerification",
        Scope.WALLETS,
        request={"application/json": SelectionParameters(many=True)},
    )
    @heavy
    def submit(self, request: Request, walletId: str, verificationId: str) -> Response:
        serializer: serializers.ListSerializer = serializers.ListSerializer(
            child=SelectionParameters(), data=request.data or [], max_length=100
        )
        hints.set_error_messages([serializer])
        self.name_ignored_members(serializer)
        serializer.is_valid(raise_exception=True)
        verification = self.get_with_parties(verificationId)
        return self.answer(verification, serializer.validated_data)

    @operation(
        "declineVerification",
        Scope.WALLETS,
        request={"application/json": DeclineParameters},
    )
    @heavy
    def decline(self, request: Request, walletId: str, verificationId: str) -> Response:
        found = self.get_with_parties(verificationId)
        reason = self.parse_body(DeclineParameters).get("reason", "")
        self.perform(found.decline, reason)
        presenting.tell_declined(found)
        return self.changed_exchange(verificationId)

    @operation("deleteWalletVerification", Scope.WALLETS)
    def destroy(self, request: Request, walletId: str, verificationId: str) -> Response:
        self.get_with_parties(verificationId).remove()
        return Response()
