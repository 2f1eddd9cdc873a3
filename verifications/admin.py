"""Admin of policies and verifications. Requests and values stay encrypted."""

from django.contrib import admin

from agency.admin import ReadOnlyAdmin
from agency.studio.exchange.admin import ExchangeAdmin
from verifications.models import Verification, VerificationPolicy


@admin.register(VerificationPolicy)
class VerificationPolicyAdmin(ReadOnlyAdmin):
    list_display = ["name", "version", "tenant", "created_at"]
    list_select_related = ["tenant"]
    search_fields = ["name", "tenant__name"]
    date_hierarchy = "created_at"
    fields = ["id", "tenant", "name", "version", "created_at", "updated_at"]


@admin.register(Verification)
class VerificationAdmin(ExchangeAdmin):
    list_display = [
        "id", "tenant", "wallet", "role", "state", "is_valid", "problem", "created_at",
    ]  # fmt: skip
    list_filter = ["state", "role", "is_valid"]
    list_select_related = ["tenant", "wallet"]
    search_fields = ["thread_id", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet", "connection", "role", "state", "thread_id",
        "policy_id", "is_valid", "verified_at", "problem", "created_at", "updated_at",
    ]  # fmt: skip
