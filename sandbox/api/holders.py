"""Simulated holders in the credentials API."""

from collections.abc import Mapping
from typing import Any, TypedDict
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.pagination import ListQuery, list_parameters
from core.api.serializers import Contract, IntegerField, Parameters
from core.api.views import View, get_or_404
from sandbox.holders import MAX_DELAY, change_holder, create_holder, remove_holder
from sandbox.models import SimulatedHolder
from tenants import audit
from tenants.models import Scope

BEHAVIOURS = [(str(one), str(one)) for one in SimulatedHolder.Behaviour]
DELAY = "After how many seconds it answers."


class SimulatedHolderParameters(Parameters):
    name = serializers.CharField(max_length=200)
    behaviour = serializers.ChoiceField(BEHAVIOURS)
    delaySeconds = IntegerField(
        default=0, min_value=0, max_value=MAX_DELAY, help_text=DELAY
    )


class SimulatedHolderContract(Contract[SimulatedHolder]):
    holderId = serializers.CharField(source="pk")
    name = serializers.CharField(source="wallet.owner_name")
    behaviour = serializers.ChoiceField(BEHAVIOURS)
    delaySeconds = serializers.IntegerField(source="delay_seconds", help_text=DELAY)
    walletId = serializers.CharField(source="wallet.wallet_id")
    connectionId = serializers.CharField(
        source="connection_id",
        required=False,
        help_text="Your newest connection with it. Offer and ask on that.",
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")


class SimulatedHolders(View):
    @property
    def holders(self) -> QuerySet[SimulatedHolder]:
        return SimulatedHolder.live_rows(self.tenant)

    def respond_with(self, holder_id: str | UUID) -> Response:
        found = get_or_404(self.holders, holder_id)
        return self.to_response(SimulatedHolderContract, found)

    @operation(
        "createSimulatedHolder",
        Scope.WALLETS,
        request=SimulatedHolderParameters,
        response=SimulatedHolderContract,
    )
    def create(self, request: Request) -> Response:
        """Create a holder, in one transaction with the audit entry.

        It is read again, as it is connected only since the commit.
        """
        body = self.parse_body(SimulatedHolderParameters)
        create = audit.recorded(create_holder, "simulated_holder.created", by=request)
        made = self.perform(create, self.tenant, **columns_of(body))
        return self.respond_with(made.pk)

    @operation(
        "listSimulatedHolders",
        Scope.READ,
        response=SimulatedHolderContract(many=True),
        parameters=list_parameters(ListQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(SimulatedHolderContract, self.holders)

    @operation("getSimulatedHolder", Scope.READ, response=SimulatedHolderContract)
    def retrieve(self, request: Request, holderId: str) -> Response:
        return self.respond_with(holderId)

    @operation(
        "updateSimulatedHolder",
        Scope.WALLETS,
        request=SimulatedHolderParameters,
        response=SimulatedHolderContract,
    )
    def change(self, request: Request, holderId: str) -> Response:
        """Change a holder; change_holder() writes the audit entry too."""
        holder = get_or_404(self.holders, holderId)
        body = self.parse_body(SimulatedHolderParameters)
        self.perform(change_holder, holder, **columns_of(body), by=request)
        return self.respond_with(holderId)

    @operation("deleteSimulatedHolder", Scope.WALLETS)
    def destroy(self, request: Request, holderId: str) -> Response:
        # In one transaction with the audit entry; without perform(), as a DELETE takes
        # no Idempotency-Key.
        holder = get_or_404(self.holders, holderId)
        remove = audit.recorded(
            remove_holder, "simulated_holder.deleted", holder, by=request
        )
        remove(holder)
        return Response()


class HolderColumns(TypedDict):
    name: str
    behaviour: str
    delay_seconds: int


def columns_of(body: Mapping[str, Any]) -> HolderColumns:
    """What a valid body says, by the names of create_holder() and change_holder()."""
    return {
        "name": body["name"],
        "behaviour": body["behaviour"],
        "delay_seconds": body["delaySeconds"],
    }
