"""Schemas and credential definitions in the credentials API."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from core.api import dialects
from core.api.notes import notes_in
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import View, heavy, or_404
from core.database.compiled_sql import CompiledQuery
from core.errors import NotFound
from core.work import transactions
from credentials import publishing, twins
from credentials.api.serializers import (
    CredentialDefinitionContract,
    CredentialDefinitionFromSchemaParameters,
    CredentialDefinitionParameters,
    CredentialDefinitionQuery,
    DefinitionChanges,
    FormatParameters,
    SchemaParameters,
    SchemaQuery,
    SchemaRecord,
    format_members,
    format_options,
)
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition, DefinitionFormat, Schema
from credentials.models.definition import WITH_FORMATS
from credentials.models.schema import build_schema_body
from tenants.models import Scope, Tenant
from wallets.anoncreds.objects import SchemaBody

active_definition = CompiledQuery(
    lambda tenant_id, definition_id: CredentialDefinition.active_of(tenant_id).filter(
        definition_id=definition_id
    ),
    UUID,
    str,
)


class Schemas(View):
    @operation(
        "createSchema",
        Scope.ISSUE,
        request=SchemaParameters,
        response={(200, "application/json"): OpenApiTypes.STR},
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(SchemaParameters)
        wanted = (body["name"], body["version"], body["attributeNames"])
        schema = self.perform(
            publishing.create_schema,
            self.tenant,
            *wanted,
            # Publishes on a remote ledger, before the transaction.
            prepare=lambda: publishing.prepare_schema(self.tenant, *wanted),
        )
        return Response(schema.schema_id)

    @operation(
        "listSchemas",
        Scope.READ,
        response=SchemaRecord(many=True),
        parameters=list_parameters(SchemaQuery),
    )
    def list(self, request: Request) -> Response:
        rows = Schema.objects.filter(tenant=self.tenant)
        return self.list_response(SchemaRecord, rows, SchemaQuery)


class CredentialDefinitions(View):
    @operation(
        "createCredentialDefinition",
        Scope.ISSUE,
        request=CredentialDefinitionFromSchemaParameters,
        response=CredentialDefinitionContract,
    )
    @heavy
    def create(self, request: Request) -> Response:
        body = self.parse_body(CredentialDefinitionFromSchemaParameters)
        schema = build_schema_body(
            self.tenant, body["name"], body["version"], body["attributes"]
        )
        schema_id = ledger_of(self.tenant.network).schema_id_of(schema)
        return self.create_definition(schema, schema_id, body)

    @operation(
        "createCredentialDefinitionForSchemaId",
        Scope.ISSUE,
        request=CredentialDefinitionParameters,
        response=CredentialDefinitionContract,
    )
    @heavy
    def create_for_schema(self, request: Request, definitionId: str) -> Response:
        # The path has the id of a schema, which is read before any transaction.
        body = self.parse_body(CredentialDefinitionParameters)
        schema = read_schema(self.tenant, definitionId)
        return self.create_definition(schema, definitionId, body)

    def create_definition(
        self, schema: SchemaBody, schema_id: str, body: dict[str, Any]
    ) -> Response:
        """Reserve the key, or publish on a remote ledger, before the transaction."""
        wanted = publishing.DefinitionParameters(
            tenant=self.tenant,
            schema_body=schema,
            schema_id=schema_id,
            tag=body.get("tag"),
            supports_revocation=body.get("supportRevocation", False),
            claims=body.get("claims"),
            recipient_attribute=body.get("recipientAttribute", ""),
            by_original_client=dialects.is_under_prefix(self.request),
            **format_members(body),
        )
        with publishing.preparing_definition(wanted) as prepare:
            made = self.perform(
                publishing.create_definition,
                wanted,
                notes=notes_in(body),
                prepare=prepare,
            )
        return self.to_response(CredentialDefinitionContract, made)

    @operation(
        "listCredentialDefinitions",
        Scope.READ,
        response=CredentialDefinitionContract(many=True),
        parameters=list_parameters(CredentialDefinitionQuery),
    )
    def list(self, request: Request) -> Response:
        rows = CredentialDefinition.active_of(self.tenant)
        rows = rows.prefetch_related(WITH_FORMATS)
        return self.list_response(
            CredentialDefinitionContract, rows, CredentialDefinitionQuery
        )

    @operation(
        "getCredentialDefinition", Scope.READ, response=CredentialDefinitionContract
    )
    def retrieve(self, request: Request, definitionId: str) -> Response:
        return self.to_response(
            CredentialDefinitionContract, get_definition(self.tenant, definitionId)
        )

    @operation(
        "updateCredentialDefinition",
        Scope.ISSUE,
        request=DefinitionChanges,
        response=CredentialDefinitionContract,
    )
    def update(self, request: Request, definitionId: str) -> Response:
        definition = get_definition(self.tenant, definitionId)
        body = self.parse_body(DefinitionChanges)
        if body:
            self.perform(change_definition, definition, body)
        return self.to_response(
            CredentialDefinitionContract, get_definition(self.tenant, definitionId)
        )

    @operation(
        "addCredentialDefinitionFormat",
        Scope.ISSUE,
        request=FormatParameters,
        response=CredentialDefinitionContract,
    )
    def add_format(self, request: Request, definitionId: str) -> Response:
        """As SD-JWT VC, beside AnonCreds."""
        body = self.parse_body(FormatParameters)
        definition = get_definition(self.tenant, definitionId)
        self.perform(add_format, definition, body)
        return self.to_response(CredentialDefinitionContract, definition)

    @operation(
        "createCredentialDefinitionTwin",
        Scope.ISSUE,
        request=None,
        response=CredentialDefinitionContract,
    )
    @heavy
    def create_twin(self, request: Request, definitionId: str) -> Response:
        definition = get_definition(self.tenant, definitionId)
        definition.tenant = self.tenant
        is_original = dialects.is_under_prefix(self.request)
        with twins.preparing_twin(definition, is_original) as prepare:
            made = self.perform(twins.create_twin, definition, prepare=prepare)
        return self.to_response(CredentialDefinitionContract, made)

    @operation("deleteCredentialDefinition", Scope.ISSUE)
    def destroy(self, request: Request, definitionId: str) -> Response:
        get_definition(self.tenant, definitionId).remove()
        return Response()


@transactions.atomic()
def change_definition(definition: CredentialDefinition, body: dict[str, Any]) -> None:
    """body: of DefinitionChanges."""
    if notes := notes_in(body):
        definition.change_notes(notes)
    if "display" in body:
        definition.change_display(body["display"])
    if "recipientAttribute" in body:
        definition.change_recipient_attribute(body["recipientAttribute"] or "")


@transactions.atomic()
def add_format(definition: CredentialDefinition, body: dict[str, Any]) -> None:
    """body: of FormatParameters."""
    DefinitionFormat.add(definition, format_options(body))
    if "display" in body:
        definition.change_display(body["display"])


def read_schema(tenant: Tenant, schema_id: str) -> SchemaBody:
    """A schema of anybody on the organization's network, as AnonCreds writes it."""
    schema = ledger_of(tenant.network).schema(schema_id)
    if schema is None:
        raise NotFound("not_found", f"There is no schema {schema_id} on your network.")
    return schema


def get_definition(tenant: Tenant, definition_id: str) -> CredentialDefinition:
    found = active_definition.first(tenant.pk, definition_id)
    return or_404(found, CredentialDefinition, definition_id)


def get_definition_to_offer(
    tenant: Tenant, asked: Mapping[str, Any]
) -> CredentialDefinition:
    """The definition of `definitionId`, or its twin if `network` means that.

    Its `tenant` is this row. 404 `not_found`, 409 `no_twin`.
    """
    definition = get_definition(tenant, asked["definitionId"])
    definition.tenant = tenant
    if "network" in asked:
        definition = twins.on_network(definition, asked["network"])
        definition.tenant = tenant
    return definition
