"""Webhooks in the admin. Their secrets and parameters are not shown."""

from django.contrib import admin

from agency.admin import ReadOnlyAdmin
from webhooks.models import Webhook


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ["type", "tenant", "url", "dialect", "is_enabled", "created_at"]
    list_filter = ["type", "is_enabled", "dialect"]
    list_select_related = ["tenant"]
    search_fields = ["tenant__name", "url"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "type", "url", "dialect", "is_enabled", "created_at", "updated_at",
    ]  # fmt: skip
