"""Schemas, definitions and credentials in the credentials API and in the wallet API."""

from functools import partial

from drf_spectacular.utils import OpenApiExample, OpenApiTypes, extend_schema
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api import View, find, found
from agency.errors import NotFound
from agency.json_only import JSONParser
from agency.listing import parameters
from agency.waiting import PREFER
from connections import links
from connections.models import Connection
from connections.serializers import terms
from credentials import protocol
from credentials.models import (
    Credential,
    CredentialDefinition,
    Schema,
    organization,
    schema_body,
)
from credentials.registries import registry_of
from credentials.serializers import (
    ConnectionCredentialQuery,
    CounterProposalParameters,
    CredentialAnswerParameters,
    CredentialContract,
    CredentialDataParameters,
    CredentialDefinitionContract,
    CredentialDefinitionFromSchemaParameters,
    CredentialDefinitionParameters,
    CredentialDefinitionQuery,
    CredentialOfferParameters,
    CredentialProposalParameters,
    CredentialQuery,
    CredentialValues,
    SchemaParameters,
    SchemaQuery,
    SchemaRecord,
)
from wallets.api import WalletView

SCHEMA_ID = "2NW27jTLopL5zrDKb1Mmx5:2:Dog licence:1.0"
DEFINITION_ID = "2NW27jTLopL5zrDKb1Mmx5:3:CL:2:default"
DEFINITION = OpenApiExample(
    "A definition",
    {
        "definitionId": DEFINITION_ID,
        "schemaId": SCHEMA_ID,
        "name": "Dog licence",
        "version": "1.0",
        "attributes": ["name", "year"],
        "supportsRevocation": False,
        "tag": "default",
    },
    response_only=True,
)
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
        "values": {"name": "Rex", "year": "2021"},
    },
    response_only=True,
)
PROPOSED = OpenApiExample(
    "A proposed credential",
    {
        "credentialId": "0196f3a2-2222-7000-8000-000000000001",
        "state": "Proposed",
        "connectionId": "0196f3a1-1111-7000-8000-000000000001",
        "definitionId": DEFINITION_ID,
        "issuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "IssuedAtUtc": "2026-01-31T08:00:00.000000Z",
        "proposal": {
            "comment": "For my dog",
            "definitionId": DEFINITION_ID,
            "credentialValues": {"name": "Rex", "year": "2021"},
        },
    },
    response_only=True,
)


@extend_schema(tags=["Definitions"])
class Schemas(View):
    @extend_schema(
        operation_id="createSchema",
        summary="Publish a schema",
        description="Answers with the schema's id as a JSON string.",
        request=SchemaParameters,
        responses={(200, "application/json"): OpenApiTypes.STR},
        examples=[
            OpenApiExample("Its id", SCHEMA_ID, response_only=True),
            OpenApiExample(
                "A schema",
                {"name": "Dog licence", "version": "1.0", "attributeNames": ["name", "year"]},
                request_only=True,
            ),
        ],
    )
    def create(self, request):
        body = self.parsed(SchemaParameters)
        wanted = (body["name"], body["version"], body["attributeNames"])
        prepare = partial(Schema.prepare, self.tenant, *wanted)
        schema = self.act(Schema.create, self.tenant, *wanted, before=prepare)
        return Response(schema.schema_id)

    @extend_schema(
        operation_id="listSchemas",
        summary="List schemas, newest first",
        parameters=parameters(SchemaQuery),
        responses=SchemaRecord(many=True),
    )
    def list(self, request):
        rows = Schema.objects.filter(tenant=self.tenant)
        return self.listed(SchemaRecord, rows, SchemaQuery)


@extend_schema(tags=["Definitions"])
class CredentialDefinitions(View):
    @extend_schema(
        operation_id="createCredentialDefinition",
        summary="Create a definition with a schema of its own",
        description="Making the keys takes 2 to 15 seconds.",
        request=CredentialDefinitionFromSchemaParameters,
        responses=CredentialDefinitionContract,
        examples=[
            DEFINITION,
            OpenApiExample(
                "From scratch",
                {"name": "Dog licence", "version": "1.0", "attributes": ["name", "year"]},
                request_only=True,
            ),
        ],
    )
    def create(self, request):
        body = self.parsed(CredentialDefinitionFromSchemaParameters)
        schema = schema_body(self.tenant, body["name"], body["version"], body["attributes"])
        schema_id = f"{schema['issuerId']}:2:{schema['name']}:{schema['version']}"
        return self.created(schema, schema_id, body)

    @extend_schema(
        operation_id="createCredentialDefinitionForSchemaId",
        summary="Create a definition for a published schema",
        description="The path takes the id of the schema. Making the keys takes 2 to 15 seconds.",
        request=CredentialDefinitionParameters,
        responses=CredentialDefinitionContract,
        examples=[DEFINITION, OpenApiExample("Tagged", {"tag": "2026"}, request_only=True)],
    )
    def create_for_schema(self, request, definitionId):
        schema_id = definitionId
        schema = registry_of(self.tenant.network).schema(schema_id)
        if schema is None:
            raise NotFound("not_found", f"There is no schema {schema_id} on your network.")
        return self.created(schema, schema_id, self.parsed(CredentialDefinitionParameters))

    def created(self, schema, schema_id, body):
        wanted = (self.tenant, schema, schema_id)
        wanted += (body.get("tag"), body.get("supportRevocation", False))
        prepare = partial(CredentialDefinition.prepare, *wanted)
        made = self.act(CredentialDefinition.create, *wanted, before=prepare)
        return self.shown(CredentialDefinitionContract, made)

    @extend_schema(
        operation_id="listCredentialDefinitions",
        summary="List definitions, newest first",
        parameters=parameters(CredentialDefinitionQuery),
        responses=CredentialDefinitionContract(many=True),
        examples=[DEFINITION],
    )
    def list(self, request):
        rows = CredentialDefinition.offered(self.tenant)
        return self.listed(CredentialDefinitionContract, rows, CredentialDefinitionQuery)

    @extend_schema(
        operation_id="getCredentialDefinition",
        summary="Read a definition",
        responses=CredentialDefinitionContract,
        examples=[DEFINITION],
    )
    def retrieve(self, request, definitionId):
        return self.shown(CredentialDefinitionContract, definition(self.tenant, definitionId))

    @extend_schema(
        operation_id="deleteCredentialDefinition",
        summary="Delete a definition: no new offers; what is published and issued stays",
        request=None,
        responses=None,
    )
    def destroy(self, request, definitionId):
        definition(self.tenant, definitionId).remove()
        return Response()


def definition(tenant, definition_id):
    rows = CredentialDefinition.offered(tenant).filter(definition_id=definition_id)
    return found(rows.first(), CredentialDefinition)


def with_parties(rows):
    """For what acts on a row; to show one, its connection is enough."""
    return rows.select_related("connection__my_key", "wallet", "tenant__network")


def of(wallet):
    return Credential.objects.filter(wallet=wallet).select_related("connection")


@extend_schema(tags=["Credentials"])
class Credentials(View):
    @property
    def rows(self):
        issued = Credential.objects.filter(tenant=self.tenant, wallet__is_organization=True)
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
                    "credentialValues": {"name": "Rex", "year": "2021"},
                },
                request_only=True,
            ),
            OpenApiExample(
                "By an out-of-band invitation, after connecting",
                {
                    "definitionId": DEFINITION_ID,
                    "automaticIssuance": True,
                    "credentialValues": {"name": "Rex", "year": "2021"},
                    "protocol": "out-of-band",
                    "handshakes": ["didexchange/1.1", "connections/1.0"],
                },
                request_only=True,
            ),
        ],
    )
    def create(self, request):
        body = self.parsed(CredentialOfferParameters)
        offered = definition(self.tenant, body["definitionId"])
        options = body.get("credentialValues"), body.get("automaticIssuance", False)
        if "connectionId" in body:
            connection = self.connection(body["connectionId"])
            credential = self.act(Credential.offer, connection, offered, *options)
        else:
            wallet = organization(self.tenant)
            wanted = (offered, *options, terms(body))
            credential = self.act(Credential.offer_by_link, wallet, *wanted)
        return self.shown(CredentialContract, find(self.rows, credential.pk))

    def connection(self, connection_id):
        connections = Connection.objects.filter(tenant=self.tenant, wallet__is_organization=True)
        connections = connections.filter(connection_id=connection_id, connectionless=False)
        return found(connections.select_related("wallet", "my_key").first(), Connection)

    @extend_schema(
        operation_id="listCredentials",
        summary="List issued and offered credentials, newest first",
        parameters=parameters(CredentialQuery),
        responses=CredentialContract(many=True),
        examples=[CREDENTIAL],
    )
    def list(self, request):
        return self.listed(CredentialContract, of(organization(self.tenant)), CredentialQuery)

    @extend_schema(
        operation_id="getCredential",
        summary="Read a credential",
        parameters=[PREFER],
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    def retrieve(self, request, credentialId):
        return self.settled(CredentialContract, lambda: find(self.rows, credentialId))

    @extend_schema(
        operation_id="issueCredential",
        summary="Issue a requested credential",
        description="A body replaces all values of the offer.",
        request={
            "application/json": {"type": "object", "additionalProperties": {"type": "string"}}
        },
        responses=None,
        examples=[OpenApiExample("Values", {"name": "Rex", "year": "2021"}, request_only=True)],
    )
    def issue(self, request, credentialId):
        values = self.parsed(CredentialValues)
        credential = find(with_parties(self.rows), credentialId)
        self.act(credential.issue, values, before=credential.reserve_place)
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
            OpenApiExample("As proposed", {"automaticIssuance": True}, request_only=True),
            OpenApiExample(
                "Something else",
                {
                    "definitionId": DEFINITION_ID,
                    "credentialValues": {"name": "Rex", "year": "2022"},
                },
                request_only=True,
            ),
        ],
    )
    def answer_proposal(self, request, credentialId):
        body = self.parsed(CredentialAnswerParameters)
        credential = find(with_parties(self.rows), credentialId)
        chosen = body.get("definitionId")
        chosen = chosen and definition(self.tenant, chosen)
        options = body.get("credentialValues"), body.get("automaticIssuance", False)
        self.act(credential.answer, chosen, *options)
        return self.shown(CredentialContract, find(self.rows, credential.pk))

    @extend_schema(
        operation_id="revokeCredential",
        summary="Revoke an issued credential",
        request=None,
        responses=None,
    )
    def revoke(self, request, credentialId):
        find(with_parties(self.rows), credentialId).revoke()
        return Response()

    @extend_schema(
        operation_id="deleteCredential",
        summary="Delete a record without revoking; an open offer is withdrawn first",
        request=None,
        responses=None,
    )
    def destroy(self, request, credentialId):
        find(with_parties(self.rows), credentialId).remove()
        return Response()

    @extend_schema(
        operation_id="purgeCredentials",
        summary="Delete all finished records of a definition without revoking",
        request=None,
        responses=None,
    )
    def purge(self, request, definitionId):
        definitions = CredentialDefinition.objects.filter(tenant=self.tenant)
        found(definitions.filter(definition_id=definitionId).first(), CredentialDefinition)
        Credential.purge(organization(self.tenant), definitionId)
        return Response()


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
        return self.listed(CredentialContract, self.rows, CredentialQuery)

    @extend_schema(
        operation_id="listCredentialsForConnectionId",
        summary="List offers and credentials of one connection",
        parameters=parameters(ConnectionCredentialQuery),
        responses=CredentialContract(many=True),
        examples=[CREDENTIAL],
    )
    def list_of_connection(self, request, walletId, connectionId):
        rows = self.rows.filter(connection__connection_id=connectionId)
        return self.listed(CredentialContract, rows, ConnectionCredentialQuery)

    @extend_schema(
        operation_id="proposeCredential",
        summary="Tell a connection which credential is wanted",
        description="The issuer may offer it, offer another one, or decline.",
        request=CredentialProposalParameters,
        responses=CredentialContract,
        examples=[
            PROPOSED,
            OpenApiExample(
                "A proposal",
                {
                    "definitionId": DEFINITION_ID,
                    "credentialValues": {"name": "Rex", "year": "2021"},
                    "comment": "For my dog",
                },
                request_only=True,
            ),
        ],
    )
    def propose(self, request, walletId, connectionId):
        wallet = self.wallet
        connections = wallet.connections.filter(connectionless=False).select_related("my_key")
        connection = found(connections.filter(connection_id=connectionId).first(), Connection)
        body = self.parsed(CredentialProposalParameters)
        proposed = self.act(Credential.propose, connection, body)
        return self.shown(CredentialContract, find(self.rows, proposed.pk))

    @extend_schema(
        operation_id="counterCredentialOffer",
        summary="Answer an offer by saying what is wanted instead",
        description="What the body leaves out stays as offered. The issuer may offer again.",
        request=CounterProposalParameters,
        responses=CredentialContract,
        examples=[
            PROPOSED,
            OpenApiExample(
                "Another value",
                {"credentialValues": {"name": "Rex", "year": "2021"}, "comment": "Wrong year"},
                request_only=True,
            ),
        ],
    )
    def counter(self, request, walletId, credentialId):
        body = self.parsed(CounterProposalParameters)
        credential = find(with_parties(self.rows), credentialId)
        self.act(credential.counter, body)
        return self.shown(CredentialContract, find(self.rows, credential.pk))

    @extend_schema(
        operation_id="getWalletCredential",
        summary="Read an offer or credential",
        parameters=[PREFER],
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    def retrieve(self, request, walletId, credentialId):
        return self.settled(CredentialContract, lambda: find(self.rows, credentialId))

    @extend_schema(
        operation_id="acceptCredentialOffer",
        summary="Accept an offer",
        request=None,
        responses=None,
    )
    def accept(self, request, walletId, credentialId):
        self.act(find(with_parties(self.rows), credentialId).accept)
        return Response()

    @extend_schema(
        operation_id="acceptCredential",
        summary="Accept an offer given as a link or data",
        request={"multipart/form-data": CredentialDataParameters},
        responses=CredentialContract,
        examples=[CREDENTIAL],
    )
    def accept_data(self, request, walletId):
        wallet = self.wallet
        given = self.parsed(CredentialDataParameters)["credentialData"]
        offer = links.resolve(given, "credentialData", protocol.check_shared)
        taken = self.act(Credential.take, wallet, offer)
        taken.connection.require_mine(taken)
        return self.shown(CredentialContract, find(self.rows, taken.pk))

    @extend_schema(
        operation_id="declineCredentialOffer",
        summary="Decline an offer; both sides become Rejected",
        request=None,
        responses=None,
    )
    def decline(self, request, walletId, credentialId):
        self.act(find(with_parties(self.rows), credentialId).decline)
        return Response()

    @extend_schema(
        operation_id="deleteWalletCredential",
        summary="Delete a credential; an open offer is declined first",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, credentialId):
        find(with_parties(self.rows), credentialId).remove()
        return Response()
