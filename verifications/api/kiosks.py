"""Kiosks in the credentials API: serializers and view."""

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.pagination import ListQuery, list_parameters
from core.api.serializers import Contract, IntegerField, Parameters
from core.api.views import View, get_or_404
from tenants import audit, branding
from tenants.models import Scope
from verifications.kiosks import (
    MAX_SECONDS,
    MIN_SECONDS,
    NoCard,
    create_kiosk,
    revoke_kiosk,
)
from verifications.models import Kiosk, VerificationPolicy
from verifications.openid4vp.requests import OPENID4VP

PROTOCOLS = [OPENID4VP]
NO_CARD_TEXT = "What the screen says to whoever has no card."
NO_CARD_URL = "The https address where they go on; the screen shows it as a QR code."
SHOWN_ITEMS = "The `policyName` of each item whose values appear on the screen."


class KioskParameters(Parameters):
    name = serializers.CharField(max_length=100)
    policyId = serializers.CharField(max_length=128)
    seconds = IntegerField(
        default=8,
        min_value=MIN_SECONDS,
        max_value=MAX_SECONDS,
        help_text="How long an answer stays on the screen.",
    )
    protocol = serializers.ChoiceField(
        PROTOCOLS,
        required=False,
        help_text="For wallets of OpenID4VP. Without it the kiosk asks by DIDComm.",
    )
    shownItems = serializers.ListField(
        child=serializers.CharField(max_length=256, trim_whitespace=False),
        default=list,
        max_length=125,
        help_text=f"{SHOWN_ITEMS} Without it, only whether the proof is valid.",
    )
    noCardText = serializers.CharField(
        required=False, allow_blank=True, max_length=300, help_text=NO_CARD_TEXT
    )
    noCardUrl = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text=NO_CARD_URL
    )

    def validate_noCardUrl(self, text: str) -> str:
        try:
            return branding.clean_https_url(text) if text.strip() else ""
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class KioskContract(Contract[Kiosk]):
    kioskId = serializers.CharField(source="pk")
    name = serializers.CharField()
    policyId = serializers.CharField(source="policy_id")
    seconds = serializers.IntegerField()
    shownItems = serializers.ListField(
        source="shown_items", child=serializers.CharField(), help_text=SHOWN_ITEMS
    )
    protocol = serializers.CharField(
        required=False, help_text="`openid4vp`, if by that."
    )
    noCardText = serializers.CharField(required=False, help_text=NO_CARD_TEXT)
    noCardUrl = serializers.CharField(required=False, help_text=NO_CARD_URL)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    lastSeenAtUtc = serializers.DateTimeField(
        source="last_seen_at",
        required=False,
        help_text="When a screen last asked, to the minute.",
    )

    def get_protocol(self, kiosk: Kiosk) -> str | None:
        return kiosk.protocol or None

    def get_noCardText(self, kiosk: Kiosk) -> str | None:
        return kiosk.no_card_text or None

    def get_noCardUrl(self, kiosk: Kiosk) -> str | None:
        return kiosk.no_card_url or None


class NewKioskContract(KioskContract):
    url = serializers.CharField(help_text="The page. Only this answer has it.")


class Kiosks(View):
    @property
    def own_kiosks(self) -> QuerySet[Kiosk]:
        return Kiosk.objects.filter(tenant=self.tenant)

    @operation(
        "createKiosk", Scope.VERIFY, request=KioskParameters, response=NewKioskContract
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(KioskParameters)
        if body["shownItems"]:  # the page shows their values to whoever has its address
            self.require_scope(Scope.VALUES)
        policies = VerificationPolicy.objects.filter(tenant=self.tenant)
        made = self.perform(
            audit.recorded(create_kiosk, "kiosk.created", by=request),
            self.tenant,
            get_or_404(policies, body["policyId"]),
            name=body["name"],
            seconds=body["seconds"],
            shown_items=body["shownItems"],
            protocol=body.get("protocol", ""),
            no_card=NoCard(body.get("noCardText", ""), body.get("noCardUrl", "")),
            shown_once=True,  # the response has the token
        )
        return self.to_response(NewKioskContract, made)

    @operation(
        "listKiosks",
        Scope.READ,
        response=KioskContract(many=True),
        parameters=list_parameters(ListQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(KioskContract, self.own_kiosks)

    @operation("getKiosk", Scope.READ, response=KioskContract)
    def retrieve(self, request: Request, kioskId: str) -> Response:
        return self.to_response(KioskContract, get_or_404(self.own_kiosks, kioskId))

    @operation("revokeKiosk", Scope.VERIFY)
    def destroy(self, request: Request, kioskId: str) -> Response:
        kiosk = get_or_404(self.own_kiosks, kioskId)
        audit.recorded(revoke_kiosk, "kiosk.revoked", kiosk, by=request)(kiosk)
        return Response()
