"""Admin of webhooks, events and deliveries, without secrets and response bodies."""

import json

from django.contrib import admin

from agency.studio.exchange.api_answer import MASK
from agency.support.admin.base import DatedAdmin, ReadOnlyAdmin
from webhooks.models import Attempt, Delivery, Event, Webhook


@admin.register(Webhook)
class WebhookAdmin(DatedAdmin):
    list_display = [
        "type", "tenant", "masked_url", "dialect", "is_enabled", "disabled_reason",
        "failing_since", "created_at",
    ]  # fmt: skip
    list_filter = ["type", "is_enabled", "disabled_reason", "dialect"]
    search_fields = ["tenant__name"]
    details = [
        "message_types", "retry_unconfirmed", "batch", "has_answered", "strikes",
        "extra_calls", "timeouts", "lost_since", "recover_since", "notice_due_at",
    ]  # fmt: skip


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = [
        "tenant", "type", "object_type", "sequence", "created_at",
    ]  # fmt: skip
    list_filter = ["type", "is_example"]
    search_fields = ["object_id", "tenant__name"]
    details = ["object_id", "masked_body", "is_example", "transaction_id", "request_id"]

    @admin.display(description="body")
    def masked_body(self, event: Event) -> str:
        """The body without the reference that the organization gave the object."""
        body = json.loads(event.body)
        body["data"] |= {"reference": MASK} if "reference" in body["data"] else {}
        return json.dumps(body, ensure_ascii=False)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = [
        "status", "webhook", "calls", "due_at", "last_error", "created_at",
    ]  # fmt: skip
    list_filter = ["status"]
    search_fields = ["event__object_id"]
    details = [
        "event", "attempts", "lease_until", "blocks_until", "finished_at",
    ]  # fmt: skip


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = [
        "started_at", "number", "duration_ms", "status_code", "error",
    ]  # fmt: skip
    list_filter = ["status_code"]
    search_fields = ["error"]
    details = ["delivery"]
