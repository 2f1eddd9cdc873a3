"""Connections and messages in the admin, without invitations and message bodies."""

from django.contrib import admin

from agency.support.admin.base import DatedAdmin, ExchangeAdmin
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)


@admin.register(Connection)
class ConnectionAdmin(ExchangeAdmin):
    list_display = [
        "tenant", "state", "name", "role", "problem_in_words", "created_at",
    ]  # fmt: skip
    list_filter = ["state", "role", "multi_party", "connectionless"]
    search_fields = ["connection_id", "name", "their_did", "tenant__name"]
    details = [
        "connection_id", "wallet",
        "multi_party", "connectionless", "image_url", "my_key", "their_did",
        "their_key", "their_endpoint", "thread_id", "handshake", "exchange_version",
        "left_at",
    ]  # fmt: skip


@admin.register(BasicMessage)
class BasicMessageAdmin(DatedAdmin):
    list_display = ["tenant", "direction", "sent_at"]
    list_filter = ["direction"]
    search_fields = ["connection__connection_id", "tenant__name"]
    details = ["connection", "wallet"]


@admin.register(InboundMessage)
class InboundMessageAdmin(DatedAdmin):
    list_display = [
        "type", "tenant", "status", "attempts", "due_at", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status", "type"]
    search_fields = ["message_id", "recipient_key", "sender_key"]
    details = ["message_id", "recipient_key", "sender_key", "lease_until"]


@admin.register(OutboundMessage)
class OutboundMessageAdmin(DatedAdmin):
    list_display = [
        "type", "tenant", "is_hosted", "status", "attempts", "due_at",
        "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status", "is_hosted", "type"]
    search_fields = ["thread_id", "recipient_key", "connection__connection_id"]
    details = ["connection", "thread_id", "recipient_key", "endpoint", "lease_until"]
