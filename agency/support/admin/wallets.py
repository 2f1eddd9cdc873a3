"""Wallets, their public keys, and simulated holders with the queue of their answers.

Seeds and link secrets are not shown.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from agency.support.admin.base import DatedAdmin, ReadOnlyAdmin
from sandbox.models import SimulatedAnswer, SimulatedHolder
from tenants import audit
from wallets.models import (
    Authority,
    Key,
    KeyFiller,
    KeyRequest,
    SigningKey,
    SpareKey,
    TrustAnchor,
    Wallet,
)


@admin.register(Wallet)
class WalletAdmin(DatedAdmin):
    list_display = [
        "tenant", "owner_name", "is_organization", "issuer_did", "created_at",
    ]  # fmt: skip
    list_filter = ["is_organization"]
    details = ["wallet_id"]
    search_fields = ["wallet_id", "owner_name", "did", "webvh_did", "tenant__name"]

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
    details = ["did"]


@admin.register(SigningKey)
class SigningKeyAdmin(DatedAdmin):
    list_display = ["thumbprint", "tenant", "purpose", "ends_at", "is_uploaded"]
    list_filter = ["purpose", "is_uploaded"]
    search_fields = ["thumbprint", "tenant__name"]


@admin.register(TrustAnchor)
class TrustAnchorAdmin(DatedAdmin):
    list_display = ["name", "tenant", "ends_at", "created_at"]
    search_fields = ["name", "fingerprint", "tenant__name"]


@admin.register(Authority)
class AuthorityAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "is_live"]


@admin.register(SpareKey)
class SpareKeyAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "leased_until"]


@admin.register(KeyRequest)
class KeyRequestAdmin(ReadOnlyAdmin):
    list_display = ["alive_until", "is_waiting", "organization", "served_at"]
    list_filter = [("served_at", admin.EmptyFieldListFilter)]


@admin.register(KeyFiller)
class KeyFillerAdmin(ReadOnlyAdmin):
    list_display = ["host", "leased_until"]


@admin.register(SimulatedHolder)
class SimulatedHolderAdmin(DatedAdmin):
    list_display = ["wallet", "behaviour", "delay_seconds", "tenant", "created_at"]
    list_filter = ["behaviour"]
    search_fields = ["wallet__wallet_id", "tenant__name"]


@admin.register(SimulatedAnswer)
class SimulatedAnswerAdmin(DatedAdmin):
    list_display = ["tenant", "kind", "status", "due_at", "attempts"]
    list_filter = ["status", "kind"]
    search_fields = ["exchange_id__exact", "tenant__name"]
    details = ["holder", "exchange_id", "lease_until", "last_error", "request_id"]
