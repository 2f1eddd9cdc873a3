"""Credentials in the credentials API: the issuer's side."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404, heavy, or_404
from connections.api.serializers import terms
from connections.models import Connection
from credentials.api.definitions import DEFINITION_ID, SCHEMA_ID, VALUES, definition
from credentials.api.serializers import (
    CredentialAnswerParameters,
    CredentialContract,
    CredentialOfferParameters,
    CredentialQuery,
    CredentialValues,
)
from credentials.models import Credential, CredentialDefinition, organization

CREDENTIAL = OpenApiExample(
    "An issued credential",
    {
        "credentialId": "0196f3a2-2222-7000-8000-000000000001",
        "state": "Issued",
        "connectionId": "0196f3a1-1111-7000-8000-000000000001",
        "definitionId": DEFINITION_ID,
        "schemaId": SCHEMA_ID,
        "issuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "IssuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "acceptedAtUtc": "2026-01-31T08:00:00.000000Z",
        "values": VALUES,
    },
    response_only=True,
)


def with_parties(rows):
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Credential.objects.filter(wallet=wallet).select_related("connection")


@extend_schema(tags=["Credentials"])
class Credentials(View):
    @property
    def rows(self):
        issued = Credential.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return issued.select_related("connection")

    @extend_schema(
        operation_id="createCredential",
        summary="Offer a credential to a connection or, without one, by a link",
        request=CredentialOfferParameters,
        responses=CredentialContract,
        examples=[
            CREDENTIAL,
            OpenApiExample(
                "An offer",
                {
                    "definitionId": DEFINITION_ID,
                    "connectionId": "0196f3a1-1111-7000-8000-000000000001",
                    "automaticIssuance": False,
                    "credentialValues": VALUES,
                },
                request_only=True,
            ),
            OpenApiExample(
                "By an out-of-band invitation, after connecting",
                {
                    "definitionId": DEFINITION_ID,
                    "automaticIssuance": True,
                    "credentialValues": VALUES,
                    "protocol": "out-of-band",
                    "handshakes": ["didexchange/1.1", "connections/1.0"],
                },
                request_only=True,
            ),
        ],
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
            wallet = organization(self.tenant)
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

    @extend_schema(
        operation_id="listCredentials",
        summary="List issued and offered credentials, newest first",
        parameters=parameters(CredentialQuery),
        responses=CredentialContract(many=True),
        examples=[CREDENTIAL],
    )
    def list(self, request):
        return self.list_response(
            CredentialContract, of(organization(self.tenant)), CredentialQuery
        )

    @extend_schema(
        operation_id="getCredential",
        summary="Read a credential",
        parameters=[PREFER],
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    def retrieve(self, request, credentialId):
        return self.wait_for_change(
            CredentialContract, lambda: get_or_404(self.rows, credentialId)
        )

    @extend_schema(
        operation_id="issueCredential",
        summary="Issue a requested credential",
        description="A body replaces all values of the offer.",
        request={
            "application/json": {
                "type": "object",
                "additionalProperties": {"type": "string"},
            }
        },
        responses=None,
        examples=[OpenApiExample("Values", VALUES, request_only=True)],
    )
    @heavy
    def issue(self, request, credentialId):
        values = self.parse_body(CredentialValues)
        credential = get_or_404(with_parties(self.rows), credentialId)
        self.perform(credential.issue, values, prepare=credential.reserve_place)
        return Response()

    @extend_schema(
        operation_id="offerCredentialFromProposal",
        summary="Offer what a holder has proposed, or something else",
        description="In the thread of the proposal. 400 `definition_unclear`: the proposal does "
        "not say which definition of yours it means, so give it.",
        request=CredentialAnswerParameters,
        responses=CredentialContract,
        examples=[
            CREDENTIAL,
            OpenApiExample(
                "As proposed", {"automaticIssuance": True}, request_only=True
            ),
            OpenApiExample(
                "Something else",
                {
                    "definitionId": DEFINITION_ID,
                    "credentialValues": VALUES | {"Graduation year": "2019"},
                },
                request_only=True,
            ),
        ],
    )
    @heavy
    def answer_proposal(self, request, credentialId):
        body = self.parse_body(CredentialAnswerParameters)
        credential = get_or_404(with_parties(self.rows), credentialId)
        chosen = body.get("definitionId")
        chosen = chosen and definition(self.tenant, chosen)
        options = body.get("credentialValues"), body.get("automaticIssuance", False)
        self.perform(credential.answer, chosen, *options)
        return self.to_response(
            CredentialContract, get_or_404(self.rows, credential.pk)
        )

    @extend_schema(
        operation_id="revokeCredential",
        summary="Revoke an issued credential",
        request=None,
        responses=None,
    )
    @heavy
    def revoke(self, request, credentialId):
        get_or_404(with_parties(self.rows), credentialId).revoke()
        return Response()

    @extend_schema(
        operation_id="deleteCredential",
        summary="Delete a record without revoking; an open offer is withdrawn first",
        request=None,
        responses=None,
    )
    def destroy(self, request, credentialId):
        get_or_404(with_parties(self.rows), credentialId).remove()
        return Response()

    @extend_schema(
        operation_id="purgeCredentials",
        summary="Delete all finished records of a definition without revoking",
        request=None,
        responses=None,
    )
    def purge(self, request, definitionId):
        definitions = CredentialDefinition.objects.filter(tenant=self.tenant)
        or_404(
            definitions.filter(definition_id=definitionId).first(), CredentialDefinition
        )
        Credential.purge(organization(self.tenant), definitionId)
        return Response()
