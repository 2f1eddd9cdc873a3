"""Admin of webhooks, events and deliveries, without secrets and response bodies."""

import json

from django.contrib import admin

from agency.studio.exchange.api_answer import MASK
from agency.support.admin.base import ReadOnlyAdmin
from webhooks.models import Attempt, Delivery, Event, Webhook


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = [
        "type", "tenant", "masked_url", "dialect", "is_enabled", "disabled_reason",
        "failing_since", "created_at",
    ]  # fmt: skip
    list_filter = ["type", "is_enabled", "disabled_reason", "dialect"]
    search_fields = ["tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "type", "masked_url", "dialect", "message_types",
        "retry_unconfirmed",
        "is_enabled", "has_answered", "strikes", "timeouts", "failing_since",
        "disabled_reason", "lost_since", "recover_since", "notice_due_at",
        "created_at", "updated_at",
    ]  # fmt: skip


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = [
        "type", "tenant", "object_type", "object_id", "sequence", "created_at",
    ]  # fmt: skip
    list_filter = ["type", "is_example"]
    search_fields = ["object_id", "tenant__name"]
    fields = [
        "id", "tenant", "type", "object_type", "object_id", "sequence", "masked_body",
        "is_example", "transaction_id", "request_id", "created_at",
    ]  # fmt: skip

    @admin.display(description="body")
    def masked_body(self, event: Event) -> str:
        """The body without the reference that the organization gave the object."""
        body = json.loads(event.body)
        body["data"] |= {"reference": MASK} if "reference" in body["data"] else {}
        return json.dumps(body, ensure_ascii=False)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = [
        "event", "webhook", "status", "calls", "due_at", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status"]
    search_fields = ["event__object_id"]
    fields = [
        "id", "event", "webhook", "status", "attempts", "calls", "due_at",
        "lease_until", "blocks_until", "last_error", "finished_at", "created_at",
    ]  # fmt: skip


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = [
        "delivery", "number", "started_at", "duration_ms", "status_code", "error",
    ]  # fmt: skip
    list_filter = ["status_code"]
    search_fields = ["error"]
    fields = [
        "id", "delivery", "number", "started_at", "duration_ms", "status_code", "error",
    ]  # fmt: skip
