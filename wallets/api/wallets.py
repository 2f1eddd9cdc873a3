"""The wallet API: wallets themselves, and the base of all views inside one wallet."""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.notes import (
    BY_REFERENCE,
    NotesContract,
    NotesParameters,
    NotesQuery,
    notes_in,
)
from core.api.openapi.operation import operation
from core.api.pagination import NamedQuery, list_parameters
from core.api.serializers import IdentifierField
from core.api.views import View, or_404
from core.database.compiled_sql import CompiledQuery
from core.errors import Conflict, Invalid
from tenants.models import Scope, Tenant
from wallets.models import Wallet


class WalletParameters(NotesParameters):
    walletId = IdentifierField(required=False)
    ownerName = serializers.CharField(required=False, max_length=200, allow_blank=True)


class WalletQuery(NamedQuery, NotesQuery):
    sorts = NamedQuery.sorts | BY_REFERENCE
    named = "owner_name"


class WalletContract(NotesContract[Wallet]):
    columns = (
        "wallet_id", "owner_name", "created_at", "updated_at", "reference", "metadata",
        "tenant",
    )  # fmt: skip

    walletId = serializers.CharField(source="wallet_id")
    name = serializers.CharField(source="owner_name", required=False)
    ownerName = serializers.CharField(source="owner_name", required=False)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")


_hosted_wallet = CompiledQuery(
    lambda tenant, wallet_id: (
        Wallet.hosted_by(tenant)
        .filter(wallet_id=wallet_id)
        .select_related("tenant__provider")
    ),
    UUID,
    str,
)


class WalletView(View):
    """A view inside the wallet that the path names.

    It may be the organization's own, if its settings allow that.
    """

    reaches_own_wallet = True

    @property
    def own_wallet(self) -> Wallet | None:
        """The organization's own wallet, if it is the one in the path, else None."""
        own: Wallet = self.caller.wallet
        is_named = self.kwargs.get("walletId") == own.wallet_id
        if not (self.reaches_own_wallet and is_named and self.tenant.own_wallet_api):
            return None
        own.tenant = self.tenant
        return own

    @property
    def wallet(self) -> Wallet:
        return self.own_wallet or self.find_hosted_wallet(self.kwargs["walletId"])

    def find_hosted_wallet(self, wallet_id: str) -> Wallet:
        """404 if the organization hosts no wallet with this id."""
        found = _hosted_wallet.first(self.tenant.pk, wallet_id)
        return or_404(found, Wallet, wallet_id)


def create_wallet(tenant: Tenant, body: dict[str, Any]) -> Wallet:
    wallet_id, owner = body.get("walletId"), body.get("ownerName", "")
    try:
        with transaction.atomic():
            return Wallet.create(tenant, wallet_id, notes_in(body), owner_name=owner)
    except IntegrityError:
        raise Conflict(
            "wallet_id_taken", f"The walletId {wallet_id} is taken."
        ) from None


class Wallets(WalletView):
    @operation(
        "createWallet",
        Scope.WALLETS,
        request=WalletParameters,
        response=WalletContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(WalletParameters)
        return self.to_response(
            WalletContract, self.perform(create_wallet, self.tenant, body)
        )

    @operation(
        "listWallets",
        Scope.READ,
        response=WalletContract(many=True),
        parameters=list_parameters(WalletQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(
            WalletContract, Wallet.hosted_by(self.tenant), WalletQuery
        )

    @operation(
        "updateWallet",
        Scope.WALLETS,
        request=NotesParameters,
        response=WalletContract,
    )
    def update(self, request: Request, walletId: str) -> Response:
        return self.change_notes(
            WalletContract, partial(self.find_hosted_wallet, walletId)
        )

    @operation("deleteWallet", Scope.WALLETS)
    def destroy(self, request: Request, walletId: str) -> Response:
        # Never the organization's own: it is deleted with its organization only.
        self.find_hosted_wallet(walletId).remove()
        return Response()

    @operation(
        "deleteWalletByQuery",
        Scope.WALLETS,
        parameters=[OpenApiParameter("walletId", str, required=True)],
    )
    def destroy_by_query(self, request: Request) -> Response:
        wallet_id = request.query_params.get("walletId")
        if not wallet_id:
            message = "Name the wallet in the query: ?walletId=…"
            raise Invalid("invalid_request", message, {"walletId": [message]})
        return self.destroy(request, wallet_id)
