"""Admin of policies and verifications. Requests and values stay encrypted."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from agency.support.admin.base import DatedAdmin, ExchangeAdmin
from agency.words.reasons import reasons_of
from verifications.models import (
    Kiosk,
    Verification,
    VerificationPolicy,
    WaitingAnswer,
)


@admin.register(VerificationPolicy)
class VerificationPolicyAdmin(DatedAdmin):
    list_display = ["name", "version", "tenant", "created_at"]
    search_fields = ["name", "tenant__name"]


@admin.register(Kiosk)
class KioskAdmin(DatedAdmin):
    list_display = ["name", "policy", "tenant", "last_seen_at", "created_at"]
    search_fields = ["name", "tenant__name"]
    details = ["seconds"]


@admin.register(WaitingAnswer)
class WaitingAnswerAdmin(DatedAdmin):
    list_display = ["tenant", "status", "due_at", "attempts"]
    list_filter = ["status"]
    search_fields = ["verification_id__exact", "tenant__name"]
    details = ["verification_id", "lease_until", "last_error", "request_id"]


@admin.register(Verification)
class VerificationAdmin(ExchangeAdmin):
    list_display = [
        "tenant", "state", "is_valid", "why", "role", "created_at",
    ]  # fmt: skip
    list_filter = [
        "state",
        "role",
        "is_valid",
        ("wallet__is_organization", admin.BooleanFieldListFilter),
    ]
    search_fields = ["thread_id__exact", "tenant__name"]
    fields = [
        "id", "tenant", "wallet", "connection", "role", "state", "thread_id",
        "policy_id", "is_valid", "verified_at", "problem_in_words", "created_at", "updated_at",
    ]  # fmt: skip

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the reasons of all listed rows at once."""
        listed = super().get_changelist_instance(request)
        listed.result_list = list(listed.result_list)
        found = reasons_of(listed.result_list)
        for row in listed.result_list:
            row.reasons = found[row.pk]
        return listed

    @admin.display(description="why")
    def why(self, verification: Any) -> str:
        """The failed checks in words, without values."""
        lines = ((reason,) for reason in verification.reasons)
        return format_html_join(mark_safe("<br>"), "{}", lines)
