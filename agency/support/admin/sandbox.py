"""Admin of simulated holders and of their queue."""

from django.contrib import admin

from agency.support.admin.base import ReadOnlyAdmin
from sandbox.models import SimulatedAnswer, SimulatedHolder


@admin.register(SimulatedHolder)
class SimulatedHolderAdmin(ReadOnlyAdmin):
    list_display = ["wallet", "behaviour", "delay_seconds", "tenant", "created_at"]
    list_filter = ["behaviour"]
    search_fields = ["wallet__wallet_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet", "behaviour", "delay_seconds", "created_at",
        "updated_at",
    ]  # fmt: skip


@admin.register(SimulatedAnswer)
class SimulatedAnswerAdmin(ReadOnlyAdmin):
    list_display = ["id", "kind", "status", "due_at", "attempts", "tenant"]
    list_filter = ["status", "kind"]
    search_fields = ["exchange_id__exact", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "holder", "kind", "exchange_id", "status", "attempts", "due_at",
        "lease_until", "last_error", "request_id", "created_at", "updated_at",
    ]  # fmt: skip
