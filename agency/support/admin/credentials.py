"""Definitions and credentials in the admin, without values and private keys."""

from django.contrib import admin

from agency.support.admin.base import ReadOnlyAdmin
from agency.support.admin.exchanges import ExchangeAdmin
from credentials.models import (
    Bulk,
    BulkRow,
    Credential,
    CredentialDefinition,
    DidEndpoint,
    Publication,
    PublishedObject,
    RevocationRegistry,
    Schema,
    StatusList,
)


@admin.register(PublishedObject)
class PublishedObjectAdmin(ReadOnlyAdmin):
    list_display = ["object_id", "kind", "network", "sequence", "created_at"]
    list_filter = ["kind", "network"]
    search_fields = ["object_id"]
    date_hierarchy = "created_at"
    fields = ["id", "network", "kind", "object_id", "sequence", "created_at"]


@admin.register(Publication)
class PublicationAdmin(ReadOnlyAdmin):
    """Jobs that publish on a remote ledger, pending and ended."""

    list_display = [
        "subject", "kind", "step", "tenant", "attempts", "due_at", "last_error",
        "created_at",
    ]  # fmt: skip
    list_filter = ["kind", "status"]
    search_fields = ["subject", "object_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "kind", "subject", "step", "object_id", "definition",
        "attempts", "due_at", "lease_until", "last_error", "created_at",
    ]  # fmt: skip


@admin.register(Schema)
class SchemaAdmin(ReadOnlyAdmin):
    list_display = ["name", "version", "tenant", "schema_id", "created_at"]
    search_fields = ["name", "schema_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "schema_id", "name", "version", "attribute_names", "created_at",
    ]  # fmt: skip


@admin.register(CredentialDefinition)
class CredentialDefinitionAdmin(ReadOnlyAdmin):
    list_display = [
        "definition_id", "tenant", "tag", "supports_revocation", "deleted_at",
        "created_at",
    ]  # fmt: skip
    list_filter = ["supports_revocation", ("deleted_at", admin.EmptyFieldListFilter)]
    search_fields = ["definition_id", "tag", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "schema", "definition_id", "tag", "supports_revocation",
        "deleted_at", "created_at",
    ]  # fmt: skip


@admin.register(Credential)
class CredentialAdmin(ExchangeAdmin):
    list_display = [
        "id", "tenant", "wallet", "role", "state", "definition_id", "problem_in_words",
        "created_at",
    ]  # fmt: skip
    list_filter = ["state", "role", "automatic_issuance"]
    search_fields = ["thread_id", "definition_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet", "connection", "role", "state", "thread_id",
        "schema_id", "definition_id", "automatic_issuance", "accepted_at", "issued_at",
        "problem_in_words", "created_at", "updated_at",
    ]  # fmt: skip


@admin.register(RevocationRegistry)
class RevocationRegistryAdmin(ReadOnlyAdmin):
    list_display = ["registry_id", "tenant", "size", "next_index", "created_at"]
    search_fields = ["registry_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "definition", "registry_id", "size", "next_index", "created_at",
    ]  # fmt: skip


@admin.register(StatusList)
class StatusListAdmin(ReadOnlyAdmin):
    list_display = ["registry_id", "timestamp", "network", "created_at"]
    search_fields = ["registry_id"]
    date_hierarchy = "created_at"
    fields = ["id", "network", "registry_id", "timestamp", "is_final", "created_at"]


@admin.register(DidEndpoint)
class DidEndpointAdmin(ReadOnlyAdmin):
    """Published endpoints of DIDs on the local network."""

    list_display = ["did", "endpoint", "network", "created_at"]
    search_fields = ["did"]
    date_hierarchy = "created_at"
    fields = ["id", "network", "did", "endpoint", "created_at"]


@admin.register(Bulk)
class BulkAdmin(ReadOnlyAdmin):
    """Files of offers, which workers make row by row."""

    list_display = [
        "id", "tenant", "definition", "state", "row_count", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status"]
    search_fields = ["definition__definition_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "definition", "state", "automatic_issuance", "row_count",
        "started_at", "paused_at", "finished_at", "due_at", "lease_until",
        "last_error", "created_at",
    ]  # fmt: skip


@admin.register(BulkRow)
class BulkRowAdmin(ReadOnlyAdmin):
    list_display = ["bulk", "number", "tenant", "status", "credential", "created_at"]
    list_filter = ["status"]
    search_fields = ["bulk__id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "bulk", "number", "status", "connection_id", "wallet_id",
        "credential", "created_at", "updated_at",
    ]  # fmt: skip
