"""Schemas and credential definitions in the credentials API."""

from contextlib import ExitStack
from functools import partial

from drf_spectacular.utils import OpenApiExample, OpenApiTypes, extend_schema
from rest_framework.response import Response

from agency.api.openapi import examples
from agency.api.pagination import parameters
from agency.api.views import View, heavy, or_404
from agency.core.errors import NotFound
from credentials.api.serializers import (
    CredentialDefinitionContract,
    CredentialDefinitionFromSchemaParameters,
    CredentialDefinitionParameters,
    CredentialDefinitionQuery,
    SchemaParameters,
    SchemaQuery,
    SchemaRecord,
)
from credentials.ledgers import registry_of
from credentials.models import CredentialDefinition, Schema, schema_body
from wallets import key_pool

# The demo organization has such a definition.
SCHEMA_ID = examples.SCHEMA
DEFINITION_ID = examples.DEFINITION
VALUES = {
    "Full name": "Alice Smith",
    "Degree": "Mathematics",
    "Graduation year": "2018",
}
DEFINITION = OpenApiExample(
    "A definition",
    {
        "definitionId": DEFINITION_ID,
        "schemaId": SCHEMA_ID,
        "name": "Degree",
        "version": "1.0",
        "attributes": list(VALUES),
        "supportsRevocation": False,
        "tag": "default",
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
                {"name": "Degree", "version": "1.0", "attributeNames": list(VALUES)},
                request_only=True,
            ),
        ],
    )
    def create(self, request):
        body = self.parse_body(SchemaParameters)
        wanted = (body["name"], body["version"], body["attributeNames"])
        prepare = partial(Schema.prepare, self.tenant, *wanted)
        schema = self.perform(Schema.create, self.tenant, *wanted, prepare=prepare)
        return Response(schema.schema_id)

    @extend_schema(
        operation_id="listSchemas",
        summary="List schemas, newest first",
        parameters=parameters(SchemaQuery),
        responses=SchemaRecord(many=True),
    )
    def list(self, request):
        rows = Schema.objects.filter(tenant=self.tenant)
        return self.list_response(SchemaRecord, rows, SchemaQuery)


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
                {"name": "Degree", "version": "1.0", "attributes": list(VALUES)},
                request_only=True,
            ),
            OpenApiExample(
                "With a number",
                {
                    "name": "Dog licence",
                    "version": "1.0",
                    "attributes": ["name", "year"],
                    "claims": {"year": {"type": "integer"}},
                },
                request_only=True,
            ),
        ],
    )
    @heavy
    def create(self, request):
        body = self.parse_body(CredentialDefinitionFromSchemaParameters)
        schema = schema_body(
            self.tenant, body["name"], body["version"], body["attributes"]
        )
        schema_id = f"{schema['issuerId']}:2:{schema['name']}:{schema['version']}"
        return self.created(schema, schema_id, body)

    @extend_schema(
        operation_id="createCredentialDefinitionForSchemaId",
        summary="Create a definition for a published schema",
        description="The path takes the id of the schema. Making the keys takes 2 to 15 seconds.",
        request=CredentialDefinitionParameters,
        responses=CredentialDefinitionContract,
        examples=[
            DEFINITION,
            OpenApiExample("Tagged", {"tag": "2026"}, request_only=True),
        ],
    )
    @heavy
    def create_for_schema(self, request, definitionId):
        schema_id = definitionId
        schema = registry_of(self.tenant.network).schema(schema_id)
        if schema is None:
            raise NotFound(
                "not_found", f"There is no schema {schema_id} on your network."
            )
        return self.created(
            schema, schema_id, self.parse_body(CredentialDefinitionParameters)
        )

    def created(self, schema, schema_id, body):
        wanted = (self.tenant, schema, schema_id)
        wanted += (
            body.get("tag"),
            body.get("supportRevocation", False),
            body.get("claims"),
        )
        with ExitStack() as undo:

            def prepare():
                prepared = CredentialDefinition.prepare(*wanted)
                if isinstance(prepared, key_pool.Reserved):
                    undo.callback(prepared.give_back)
                return prepared

            made = self.perform(CredentialDefinition.create, *wanted, prepare=prepare)
            undo.pop_all()  # the key is the definition's now
        return self.to_response(CredentialDefinitionContract, made)

    @extend_schema(
        operation_id="listCredentialDefinitions",
        summary="List definitions, newest first",
        parameters=parameters(CredentialDefinitionQuery),
        responses=CredentialDefinitionContract(many=True),
        examples=[DEFINITION],
    )
    def list(self, request):
        rows = CredentialDefinition.offered(self.tenant)
        return self.list_response(
            CredentialDefinitionContract, rows, CredentialDefinitionQuery
        )

    @extend_schema(
        operation_id="getCredentialDefinition",
        summary="Read a definition",
        responses=CredentialDefinitionContract,
        examples=[DEFINITION],
    )
    def retrieve(self, request, definitionId):
        return self.to_response(
            CredentialDefinitionContract, definition(self.tenant, definitionId)
        )

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
    return or_404(rows.first(), CredentialDefinition)
