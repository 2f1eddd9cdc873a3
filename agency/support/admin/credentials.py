"""Definitions and credentials in the admin, without values and private keys."""

from django.contrib import admin

from agency.support.admin.base import DatedAdmin, ExchangeAdmin, ReadOnlyAdmin
from credentials.models import (
    Bulk,
    BulkRow,
    Credential,
    CredentialDefinition,
    DefinitionFormat,
    DidEndpoint,
    Grant,
    MailDay,
    Mailing,
    MailingRow,
    Publication,
    PublishedObject,
    ReadLog,
    ReadResource,
    RevocationRegistry,
    Schema,
    StatusList,
    TokenStatusList,
    WebvhDid,
    WebvhResource,
)


@admin.register(PublishedObject)
class PublishedObjectAdmin(DatedAdmin):
    list_display = ["object_id", "kind", "network", "sequence", "created_at"]
    list_filter = ["kind", "network"]
    search_fields = ["object_id"]


@admin.register(Publication)
class PublicationAdmin(DatedAdmin):
    """Jobs that publish on a remote ledger, pending and ended."""

    list_display = [
        "subject", "kind", "step", "tenant", "attempts", "due_at", "last_error",
        "created_at",
    ]  # fmt: skip
    list_filter = ["kind", "status"]
    search_fields = ["subject", "object_id", "tenant__name"]
    details = ["object_id", "definition", "lease_until"]


@admin.register(Schema)
class SchemaAdmin(DatedAdmin):
    list_display = ["name", "version", "tenant", "schema_id", "created_at"]
    search_fields = ["name", "schema_id", "tenant__name"]
    details = ["attribute_names"]


@admin.register(CredentialDefinition)
class CredentialDefinitionAdmin(DatedAdmin):
    list_display = [
        "definition_id", "tenant", "tag", "supports_revocation", "deleted_at",
        "created_at",
    ]  # fmt: skip
    list_filter = ["supports_revocation", ("deleted_at", admin.EmptyFieldListFilter)]
    search_fields = ["definition_id", "tag", "tenant__name"]
    details = ["schema"]


@admin.register(DefinitionFormat)
class DefinitionFormatAdmin(DatedAdmin):
    list_display = ["type_id", "format", "tenant", "definition", "created_at"]
    search_fields = ["type_id", "tenant__name"]
    details = ["validity_days"]


@admin.register(Credential)
class CredentialAdmin(ExchangeAdmin):
    list_display = [
        "tenant", "state", "role", "definition_id", "problem_in_words", "created_at",
    ]  # fmt: skip
    list_filter = ["state", "role", "automatic_issuance"]
    search_fields = ["thread_id", "definition_id", "tenant__name"]
    details = [
        "wallet", "connection", "thread_id", "schema_id", "automatic_issuance", "accepted_at",
        "issued_at",
    ]  # fmt: skip


@admin.register(Grant)
class GrantAdmin(DatedAdmin):
    """Of offers to wallets of OpenID4VC, without codes and tokens."""

    list_display = ["tenant", "created_at", "tries", "redeemed_at", "notified"]
    details = ["credential", "token_expires_at", "served_at"]


@admin.register(TokenStatusList)
class TokenStatusListAdmin(DatedAdmin):
    list_display = ["number", "tenant", "used", "version", "updated_at"]
    search_fields = ["tenant__name"]


@admin.register(RevocationRegistry)
class RevocationRegistryAdmin(DatedAdmin):
    list_display = ["registry_id", "tenant", "size", "next_index", "created_at"]
    search_fields = ["registry_id", "tenant__name"]
    details = ["definition"]


@admin.register(StatusList)
class StatusListAdmin(DatedAdmin):
    list_display = ["registry_id", "timestamp", "network", "created_at"]
    search_fields = ["registry_id"]
    details = ["is_final"]


@admin.register(DidEndpoint)
class DidEndpointAdmin(DatedAdmin):
    list_display = ["did", "endpoint", "network", "created_at"]
    search_fields = ["did"]


@admin.register(WebvhDid)
class WebvhDidAdmin(DatedAdmin):
    list_display = ["did", "tenant", "state", "versions", "created_at"]
    search_fields = ["did", "tenant__name"]
    details = ["rotation_due_at"]


@admin.register(WebvhResource)
class WebvhResourceAdmin(DatedAdmin):
    list_display = ["unique_name", "did", "updated_at"]
    search_fields = ["did__did"]
    details = ["signed_by"]


@admin.register(ReadLog)
class ReadLogAdmin(DatedAdmin):
    list_display = ["did", "versions", "updated_at"]
    search_fields = ["did"]


@admin.register(ReadResource)
class ReadResourceAdmin(DatedAdmin):
    list_display = ["resource_id", "kind", "updated_at"]
    list_filter = ["kind"]
    search_fields = ["resource_id"]


@admin.register(Bulk)
class BulkAdmin(DatedAdmin):
    """Files of offers, which workers make row by row."""

    list_display = [
        "tenant", "state", "row_count", "definition", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status"]
    search_fields = ["definition__definition_id", "tenant__name"]
    details = [
        "automatic_issuance", "started_at", "paused_at", "finished_at", "due_at",
        "lease_until",
    ]  # fmt: skip


@admin.register(BulkRow)
class BulkRowAdmin(DatedAdmin):
    list_display = ["tenant", "number", "status", "created_at"]
    list_filter = ["status"]
    search_fields = ["bulk__id", "tenant__name"]
    details = ["bulk", "credential", "connection_id", "wallet_id"]


@admin.register(Mailing)
class MailingAdmin(DatedAdmin):
    """Mails of an organization, without texts and addresses."""

    list_display = [
        "tenant", "state", "is_reminder", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status", "is_reminder"]
    search_fields = ["tenant__name"]
    details = [
        "bulk", "language", "paused_at", "stopped_at", "finished_at", "due_at", "lease_until",
    ]  # fmt: skip


@admin.register(MailingRow)
class MailingRowAdmin(DatedAdmin):
    list_display = [
        "tenant", "number", "status", "code", "created_at",
    ]  # fmt: skip
    list_filter = ["status"]
    search_fields = ["mailing__id", "tenant__name"]
    details = ["mailing", "credential", "attempts", "due_at", "lease_until"]


@admin.register(MailDay)
class MailDayAdmin(ReadOnlyAdmin):
    """How many mails an organization has sent on a day, by UTC."""

    list_display = ["day", "tenant", "sent"]
    search_fields = ["tenant__name"]
