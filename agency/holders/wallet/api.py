"""The personal links of hosted wallets in the wallet API."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agency.holders.wallet import links
from agency.holders.wallet.models import PersonalLink
from core.api.openapi.operation import operation
from core.api.serializers import Contract
from tenants.models import Scope
from wallets.api.wallets import WalletView


class PersonalLinkContract(Contract):
    hasLink = serializers.BooleanField(
        source="is_stored", help_text="Whether the wallet has a personal link."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at", required=False)
    updatedAtUtc = serializers.DateTimeField(source="updated_at", required=False)
    expiresAt = serializers.DateTimeField(
        source="expires_at",
        required=False,
        help_text="When it ends, unless the holder chooses a PIN before.",
    )
    pinChosenAtUtc = serializers.DateTimeField(
        source="pin_chosen_at",
        required=False,
        help_text="When the holder chose the PIN.",
    )


class NewPersonalLinkContract(PersonalLinkContract):
    link = serializers.CharField(
        source="url", help_text="It is in this answer only. Give it to the holder."
    )


class PersonalLinks(WalletView):
    reaches_own_wallet = False  # the organization's staff have the studio

    # It ends the link before it, with its PIN.
    @operation(
        "createPersonalLink",
        Scope.LINKS,
        response=NewPersonalLinkContract,
        irreversible=True,
    )
    def create(self, request: Request, walletId: str) -> Response:
        made = self.perform(links.create_link, self.wallet, by=request, shown_once=True)
        return self.to_response(NewPersonalLinkContract, made)

    @operation("getPersonalLink", Scope.READ, response=PersonalLinkContract)
    def retrieve(self, request: Request, walletId: str) -> Response:
        found = PersonalLink.objects.filter(wallet=self.wallet).first()
        if found is None:
            return Response({"hasLink": False})
        return self.to_response(PersonalLinkContract, found)

    @operation("revokePersonalLink", Scope.LINKS)
    def destroy(self, request: Request, walletId: str) -> Response:
        links.revoke_link(self.wallet, by=request)
        return Response()
