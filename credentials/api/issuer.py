"""Credentials in the credentials API: the issuer's side."""

from functools import partial

from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.openapi.operation import operation
from agency.api.pagination import list_parameters
from agency.api.views import View, get_or_404, heavy, or_404
from connections.api.serializers import terms
from connections.models import Connection
from credentials import revocation
from credentials.api.definitions import definition
from credentials.api.serializers import (
    CredentialAnswerParameters,
    CredentialContract,
    CredentialOfferParameters,
    CredentialQuery,
    CredentialValues,
)
from credentials.issue_credential import proposals
from credentials.models import Credential, CredentialDefinition
from credentials.models.schema import organization_wallet
from credentials.removal import purge_credentials, remove_credential


def with_parties(rows):
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Credential.objects.filter(wallet=wallet).select_related("connection")


class Credentials(View):
    @property
    def rows(self):
        issued = Credential.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return issued.select_related("connection")

    @operation(
        "createCredential",
        request=CredentialOfferParameters,
        response=CredentialContract,
    )
    @heavy
    def create(self, request):
        body = self.parse_body(CredentialOfferParameters)
        offered = definition(self.tenant, body["definitionId"])
        options = body.get("credentialValues"), body.get("automaticIssuance", False)
        if "connectionId" in body:
            connection = self.connection(body["connectionId"])
            credential = self.perform(Credential.offer, connection, offered, *options)
        else:
            wallet = organization_wallet(self.tenant)
            wanted = (offered, *options, terms(body))
            credential = self.perform(Credential.offer_by_link, wallet, *wanted)
        return self.to_response(
            CredentialContract, get_or_404(self.rows, credential.pk)
        )

    def connection(self, connection_id):
        connections = Connection.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        connections = connections.filter(
            connection_id=connection_id, connectionless=False
        )
        return or_404(
            connections.select_related("wallet", "my_key").first(), Connection
        )

    @operation(
        "listCredentials",
        response=CredentialContract(many=True),
        parameters=list_parameters(CredentialQuery),
    )
    def list(self, request):
        return self.list_response(
            CredentialContract, of(organization_wallet(self.tenant)), CredentialQuery
        )

    @operation("getCredential", response=CredentialContract, parameters=[PREFER])
    def retrieve(self, request, credentialId):
        return self.wait_for_change(
            CredentialContract, lambda: get_or_404(self.rows, credentialId)
        )

    @operation(
        "issueCredential",
        request={
            "application/json": {
                "type": "object",
                "additionalProperties": {"type": "string"},
            }
        },
    )
    @heavy
    def issue(self, request, credentialId):
        values = self.parse_body(CredentialValues)
        credential = get_or_404(with_parties(self.rows), credentialId)
        reserve = partial(revocation.reserve_slot, credential)
        self.perform(credential.issue, values, prepare=reserve)
        return Response()

    @operation(
        "offerCredentialFromProposal",
        request=CredentialAnswerParameters,
        response=CredentialContract,
    )
    @heavy
    def answer_proposal(self, request, credentialId):
        body = self.parse_body(CredentialAnswerParameters)
        credential = get_or_404(with_parties(self.rows), credentialId)
        chosen = body.get("definitionId")
        chosen = chosen and definition(self.tenant, chosen)
        options = body.get("credentialValues"), body.get("automaticIssuance", False)
        self.perform(proposals.offer_proposed, credential, chosen, *options)
        return self.to_response(
            CredentialContract, get_or_404(self.rows, credential.pk)
        )

    @operation("revokeCredential")
    @heavy
    def revoke(self, request, credentialId):
        revocation.revoke(get_or_404(with_parties(self.rows), credentialId))
        return Response()

    @operation("deleteCredential")
    def destroy(self, request, credentialId):
        remove_credential(get_or_404(with_parties(self.rows), credentialId))
        return Response()

    @operation("purgeCredentials")
    def purge(self, request, definitionId):
        definitions = CredentialDefinition.objects.filter(tenant=self.tenant)
        or_404(
            definitions.filter(definition_id=definitionId).first(), CredentialDefinition
        )
        purge_credentials(organization_wallet(self.tenant), definitionId)
        return Response()
