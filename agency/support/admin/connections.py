"""Connections and messages in the admin, without invitations and message bodies."""

from django.contrib import admin

from agency.support.admin.base import ReadOnlyAdmin
from agency.support.admin.exchanges import ExchangeAdmin
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)


@admin.register(Connection)
class ConnectionAdmin(ExchangeAdmin):
    list_display = [
        "connection_id", "tenant", "wallet", "role", "state", "name", "problem_in_words",
        "created_at",
    ]  # fmt: skip
    list_filter = ["state", "role", "multi_party", "connectionless"]
    search_fields = ["connection_id", "name", "their_did", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet", "connection_id", "role", "state", "multi_party",
        "connectionless", "name", "image_url", "my_key", "their_did", "their_key",
        "their_endpoint", "thread_id", "handshake", "exchange_version", "problem_in_words",
        "left_at", "created_at", "updated_at",
    ]  # fmt: skip


@admin.register(BasicMessage)
class BasicMessageAdmin(ReadOnlyAdmin):
    list_display = ["id", "tenant", "connection", "direction", "sent_at"]
    list_filter = ["direction"]
    search_fields = ["connection__connection_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet", "connection", "direction", "sent_at", "created_at",
    ]  # fmt: skip


DELIVERY = ["status", "attempts", "due_at", "lease_until", "last_error", "created_at"]


@admin.register(InboundMessage)
class InboundMessageAdmin(ReadOnlyAdmin):
    list_display = [
        "type", "tenant", "status", "attempts", "due_at", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status", "type"]
    search_fields = ["message_id", "recipient_key", "sender_key"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "type", "message_id", "recipient_key", "sender_key", *DELIVERY,
    ]  # fmt: skip


@admin.register(OutboundMessage)
class OutboundMessageAdmin(ReadOnlyAdmin):
    list_display = [
        "type", "tenant", "connection", "is_hosted", "status", "attempts", "due_at",
        "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status", "is_hosted", "type"]
    search_fields = ["thread_id", "recipient_key", "connection__connection_id"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "connection", "type", "thread_id", "recipient_key", "endpoint",
        "is_hosted", *DELIVERY,
    ]  # fmt: skip
