"""Credentials in the credentials API: the issuer's side."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from connections.api.exchanges import ExchangeView
from connections.api.link_options import create_with_options, read_link_options
from connections.api.scopes import find_in_scope
from connections.api.serializers import OPENID4VCI, out_of_band_options
from connections.models import Connection
from connections.protocols import public_dids
from core.api.long_poll import PREFER
from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters, only_columns, paginate
from core.api.views import heavy, or_404
from core.errors import Conflict
from credentials import revocation, twins
from credentials.api.definitions import get_definition, get_definition_to_offer
from credentials.api.serializers import (
    CredentialAnswerParameters,
    CredentialContract,
    CredentialOfferParameters,
    CredentialQuery,
    CredentialValues,
    RevocationContract,
    RevocationParameters,
    RevocationQuery,
)
from credentials.issue_credential import proposals
from credentials.models import Credential, CredentialDefinition
from credentials.models.name_search import find_named
from credentials.openid4vci import offers
from credentials.removal import purge_credentials, remove_credential
from tenants.models import Scope, Tenant
from wallets.models import Wallet

# How members of RevocationParameters limit the rows.
REVOCATION_LOOKUPS = {
    "credentialIds": "pk__in",
    "definitionId": "definition_id",
    "issuedAfter": "issued_at__gt",
    "issuedBefore": "issued_at__lt",
}


def find_revocable(tenant: Tenant, body: Mapping[str, Any]) -> QuerySet[Credential]:
    """The issued and revoked credentials that valid RevocationParameters mean."""
    meant = {REVOCATION_LOOKUPS[name]: value for name, value in body.items()}
    return Credential.objects.filter(
        wallet=Wallet.of_organization(tenant),
        role=Credential.Role.ISSUER,
        revocation_index__isnull=False,
        **meant,
    )


def offer_function(tenant: Tenant, body: dict[str, Any]) -> Callable[[], Credential]:
    """Return a function that offers what valid CredentialOfferParameters ask for.

    A function, because its caller runs it in a transaction with more: perform() stores
    the Idempotency-Key in it, the studio an audit entry. It offers over the connection
    that the body names, or else by a link.

    404 for an unknown definition or connection, 409 `endpoint_not_published`,
    `no_twin`.
    """
    definition = get_definition_to_offer(tenant, body)
    offered = {
        "definition": definition,
        "values": body.get("credentialValues"),
        "automatic_issuance": body.get("automaticIssuance", False),
        "notes": notes_in(body),
        "recipient_name": body.get("recipientName", ""),
    }
    if "connectionId" in body:
        found = find_in_scope(tenant.pk, body["connectionId"])
        offer = Credential.offer if "network" in body else twins.offer
        return partial(
            offer,
            or_404(found, Connection, body["connectionId"]),
            **offered,
        )
    wallet = Wallet.of_organization(tenant)
    if body["protocol"] == OPENID4VCI:
        has_code = body.get("transactionCode", False)
        share = partial(
            offers.offer_by_link, wallet, has_transaction_code=has_code, **offered
        )
        return partial(create_with_options, share, read_link_options(tenant, body))
    if body.get("usePublicDid"):
        public_dids.require_resolvable_did(wallet)
    share = partial(
        Credential.offer_by_link,
        wallet,
        options=out_of_band_options(body),
        exchange_version=body.get("exchangeVersion", ""),
        attachment_format=body.get("attachmentFormat", ""),
        **offered,
    )
    return partial(create_with_options, share, read_link_options(tenant, body))


class Credentials(ExchangeView[Credential]):
    model = Credential
    contract = CredentialContract

    def get_issued_here(self, credential_id: str) -> Credential:
        """The credential, or 404. 409 `wrong_role` if the organization holds it."""
        credential = self.get_with_parties(credential_id)
        if credential.role != Credential.Role.ISSUER:
            raise Conflict(
                "wrong_role",
                "Your organization holds this credential and does not issue it: use "
                "the wallet API with its own wallet.",
            )
        return credential

    @operation(
        "createCredential",
        Scope.ISSUE,
        request=CredentialOfferParameters,
        response=CredentialContract,
    )
    @heavy
    def create(self, request: Request) -> Response:
        body = self.parse_body(CredentialOfferParameters)
        offer = offer_function(self.tenant, body)
        has_code = body.get("transactionCode", False)
        made = self.perform(offer, shown_once=has_code)
        # Only the object that was just made has it.
        code = made.transaction_code if has_code else ""
        row = self.get_exchange(made.pk)
        return self.to_response(CredentialContract, row, transaction_code=code)

    @operation(
        "listCredentials",
        Scope.READ,
        response=CredentialContract(many=True),
        parameters=list_parameters(CredentialQuery),
    )
    def list(self, request: Request) -> Response:
        rows = self.rows_of_role(Credential.Role.ISSUER)
        query = self.parse_query(CredentialQuery)
        if name := query.validated_data.pop("recipientName", ""):
            # Else names could be guessed, letter by letter.
            self.require_scope(Scope.VALUES)
            rows = rows.filter(pk__in=find_named(self.tenant, name))
        page = paginate(only_columns(rows, CredentialContract.columns), query)
        return self.page_response(CredentialContract, page)

    @operation(
        "getCredential", Scope.READ, response=CredentialContract, parameters=[PREFER]
    )
    def retrieve(self, request: Request, credentialId: str) -> Response:
        return self.wait_for_exchange(credentialId)

    @operation(
        "updateCredential",
        Scope.ISSUE,
        request=NotesParameters,
        response=CredentialContract,
    )
    def update(self, request: Request, credentialId: str) -> Response:
        return self.change_notes_of_exchange(credentialId)

    @operation(
        "issueCredential",
        Scope.ISSUE,
        request={
            "application/json": {
                "type": "object",
                "additionalProperties": {"type": "string"},
            }
        },
        response=CredentialContract,
    )
    @heavy
    def issue(self, request: Request, credentialId: str) -> Response:
        values = self.parse_body(CredentialValues)
        credential = self.get_issued_here(credentialId)
        self.perform(
            credential.issue,
            values,
            # Before the transaction that issues: the registry is locked only briefly.
            prepare=lambda: revocation.reserve_slot(credential),
        )
        return self.changed_exchange(credentialId)

    @operation(
        "offerCredentialFromProposal",
        Scope.ISSUE,
        request=CredentialAnswerParameters,
        response=CredentialContract,
    )
    @heavy
    def answer_proposal(self, request: Request, credentialId: str) -> Response:
        body = self.parse_body(CredentialAnswerParameters)
        credential = self.get_issued_here(credentialId)
        definition = None
        if definition_id := body.get("definitionId"):
            definition = get_definition(self.tenant, definition_id)
        self.perform(
            proposals.offer_proposed,
            credential,
            definition=definition,
            values=body.get("credentialValues"),
            automatic_issuance=body.get("automaticIssuance", False),
        )
        return self.exchange_response(credential.pk)

    @operation("revokeCredential", Scope.ISSUE)
    @heavy
    def revoke(self, request: Request, credentialId: str) -> Response:
        revocation.revoke(self.get_issued_here(credentialId))
        return Response()

    @operation(
        "revokeCredentials",
        Scope.ISSUE,
        request=RevocationParameters,
        response=RevocationContract,
        parameters=[RevocationQuery],
        irreversible=True,
    )
    @heavy
    def revoke_many(self, request: Request) -> Response:
        rows = find_revocable(self.tenant, self.parse_body(RevocationParameters))
        if not self.parse_query(RevocationQuery).validated_data["dryRun"]:
            self.perform(revocation.mark_revoked, rows)
            # If the process dies here, a worker or the repeated call publishes.
            revocation.publish_and_notify_all(rows)
        return self.to_response(RevocationContract, revocation.count_revocable(rows))

    @operation("deleteCredential", Scope.ISSUE)
    def destroy(self, request: Request, credentialId: str) -> Response:
        remove_credential(self.get_with_parties(credentialId))
        return Response()

    @operation("purgeCredentials", Scope.ISSUE)
    def purge(self, request: Request, definitionId: str) -> Response:
        # Also a deleted definition: its credentials are still here.
        definitions = CredentialDefinition.objects.filter(tenant=self.tenant)
        or_404(
            definitions.filter(definition_id=definitionId).first(),
            CredentialDefinition,
            definitionId,
        )
        purge_credentials(self.wallet, definitionId)
        return Response()
