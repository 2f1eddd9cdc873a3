"""Wallets and their public keys in the admin. Seeds and link secrets are not shown."""

from django.contrib import admin

from agency.admin import ReadOnlyAdmin
from wallets.models import Key, KeyDemand, SpareKey, Wallet


@admin.register(Wallet)
class WalletAdmin(ReadOnlyAdmin):
    list_display = [
        "wallet_id",
        "owner_name",
        "tenant",
        "is_organization",
        "did",
        "created_at",
    ]
    list_filter = ["is_organization"]
    list_select_related = ["tenant"]
    search_fields = ["wallet_id", "owner_name", "did", "tenant__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "tenant", "wallet_id", "owner_name", "is_organization", "did",
        "created_at", "updated_at",
    ]  # fmt: skip


@admin.register(Key)
class KeyAdmin(ReadOnlyAdmin):
    list_display = ["verkey", "tenant", "wallet", "retired_at", "created_at"]
    list_filter = [("retired_at", admin.EmptyFieldListFilter)]
    list_select_related = ["tenant", "wallet"]
    search_fields = ["verkey", "tenant__name"]
    fields = ["id", "tenant", "wallet", "verkey", "did", "retired_at", "created_at"]


@admin.register(SpareKey)
class SpareKeyAdmin(ReadOnlyAdmin):
    list_display = ["id", "attributes", "created_at"]
    list_filter = ["attributes"]
    fields = ["id", "attributes", "created_at"]


@admin.register(KeyDemand)
class KeyDemandAdmin(ReadOnlyAdmin):
    list_display = ["attributes", "asked_at"]
    fields = ["attributes", "asked_at"]
