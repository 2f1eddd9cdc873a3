"""Wallets and their public keys in the admin. Seeds and link secrets are not shown."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from agency.support.admin.base import ReadOnlyAdmin
from tenants import audit
from wallets.models import Key, KeyFiller, KeyRequest, SpareKey, Wallet


@admin.register(Wallet)
class WalletAdmin(ReadOnlyAdmin):
    list_display = [
        "wallet_id", "owner_name", "tenant", "is_organization", "did", "created_at",
    ]  # fmt: skip
    list_filter = ["is_organization"]
    search_fields = ["wallet_id", "owner_name", "did", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet_id", "owner_name", "is_organization", "did",
        "created_at", "updated_at",
    ]  # fmt: skip

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Log the look at a holder's wallet: it is the record of a person."""
        wallet = options.get("obj")
        if wallet and not wallet.is_organization:
            audit.record("record.viewed", wallet, by=request)
        return super().render_change_form(request, context, *args, **options)


@admin.register(Key)
class KeyAdmin(ReadOnlyAdmin):
    list_display = ["verkey", "tenant", "wallet", "retired_at", "created_at"]
    list_filter = [("retired_at", admin.EmptyFieldListFilter)]
    search_fields = ["verkey", "tenant__name"]
    fields = ["id", "tenant", "wallet", "verkey", "did", "retired_at", "created_at"]


@admin.register(SpareKey)
class SpareKeyAdmin(ReadOnlyAdmin):
    list_display = ["id", "leased_until", "created_at"]
    fields = ["id", "leased_until", "created_at"]


@admin.register(KeyRequest)
class KeyRequestAdmin(ReadOnlyAdmin):
    list_display = ["id", "organization", "is_waiting", "alive_until", "served_at"]
    list_filter = [("served_at", admin.EmptyFieldListFilter)]
    fields = ["id", "organization", "is_waiting", "alive_until", "served_at"]


@admin.register(KeyFiller)
class KeyFillerAdmin(ReadOnlyAdmin):
    list_display = ["host", "leased_until"]
    fields = ["host", "leased_until"]
