"""The provider API: the organizations that a provider account made, by the account's key."""

from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agency.api.authentication import ProviderAuthentication
from agency.api.negotiation import JSONParser
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404
from agency.core.errors import Conflict
from organizations import usage
from organizations.api.organizations import (
    NETWORK,
    TENANT,
    WANTED,
    make,
    networks,
    with_issuer,
)
from organizations.api.serializers import (
    AssetContract,
    CloudWalletAnalyticsContract,
    NetworkContract,
    PictureParameters,
    TenantContract,
    TenantKeysContract,
    TenantParameters,
    TenantQuery,
    TenantUpdateParameters,
    UsageContract,
)
from organizations.provisioning import TENANT_KINDS, remove_organization
from tenants import assets, vault
from tenants.models import ApiKey, Provider, Tenant

MEMBERS = {
    ApiKey.Kind.ACCESS_TOKEN: "accessToken",
    ApiKey.Kind.SUBSCRIPTION_KEY: "subscriptionKey",
}
KEYS = OpenApiExample(
    "Keys",
    {
        "accessToken": "agt_8Jq0…",
        "subscriptionKey": "ags_x7Tb…",
    },
    response_only=True,
)
MONTH = OpenApiExample(
    "A month",
    {
        "periodStart": "2026-01-01T00:00:00.000000Z",
        "periodEnd": "2026-02-01T00:00:00.000000Z",
        "credentialCount": 120,
        "verificationCount": 45,
    },
    response_only=True,
)


class ProviderView(View):
    """A view of the provider API. The subscription key plays no part."""

    authentication_classes = [ProviderAuthentication]

    @property
    def provider(self) -> Provider:
        return self.request.user.provider

    @property
    def owner(self) -> dict[str, Provider]:
        return {"provider": self.provider}

    @property
    def rows(self) -> QuerySet[Tenant]:
        return with_issuer(usage.tenants_of(self.provider))


@extend_schema(tags=["Provider"])
class ProviderTenants(ProviderView):
    @extend_schema(
        operation_id="listProviderTenants",
        summary="List the account's organizations, newest first",
        parameters=parameters(TenantQuery),
        responses=TenantContract(many=True),
        examples=[TENANT],
    )
    def list(self, request: Request) -> Response:
        return self.list_response(TenantContract, self.rows, TenantQuery)

    @extend_schema(
        operation_id="createProviderTenant",
        summary="Make an organization",
        request=TenantParameters,
        responses=TenantContract,
        examples=[WANTED, TENANT],
    )
    def create(self, request: Request) -> Response:
        made = self.perform(make, self.provider, self.parse_body(TenantParameters))
        return self.to_response(TenantContract, self.rows.get(pk=made.pk))

    @extend_schema(
        operation_id="deleteAllProviderTenants",
        summary="Delete all organizations of the account",
        request=None,
        responses=None,
    )
    def destroy_all(self, request: Request) -> Response:
        for tenant in self.rows:
            remove_organization(tenant)
        return Response()

    @extend_schema(
        operation_id="getProviderTenant",
        summary="Read an organization",
        responses=TenantContract,
        examples=[TENANT],
    )
    def retrieve(self, request: Request, tenantId: str) -> Response:
        return self.to_response(TenantContract, self.one(tenantId))

    @extend_schema(
        operation_id="updateProviderTenant",
        summary="Change the name, the picture or the QR codes of an organization",
        request=TenantUpdateParameters,
        responses=None,
        examples=[OpenApiExample("Renamed", {"name": "Registry"}, request_only=True)],
    )
    def update(self, request: Request, tenantId: str) -> Response:
        tenant, body = self.one(tenantId), self.parse_body(TenantUpdateParameters)
        names = {
            "name": "name",
            "imageUrl": "image_url",
            "shortQrCodes": "short_qr_codes",
        }
        changes = {column: body[name] for name, column in names.items() if name in body}
        rows, now = Tenant.objects.filter(pk=tenant.pk), timezone.now()
        self.perform(partial(rows.update, **changes, updated_at=now))
        return Response()

    @extend_schema(
        operation_id="deleteProviderTenant",
        summary="Delete an organization with all that is in it",
        request=None,
        responses=None,
    )
    def destroy(self, request: Request, tenantId: str) -> Response:
        remove_organization(self.one(tenantId))
        return Response()

    @extend_schema(
        operation_id="getProviderTenantKeys",
        summary="The newest keys of an organization",
        responses=TenantKeysContract,
        examples=[KEYS],
    )
    def keys(self, request: Request, tenantId: str) -> Response:
        return self.to_response(TenantKeysContract, readable_keys(self.one(tenantId)))

    @extend_schema(
        operation_id="changeProviderTenantKeys",
        summary="New keys for an organization; the old ones live on for 24 hours",
        request=None,
        responses=TenantKeysContract,
        examples=[KEYS],
    )
    def change_keys(self, request: Request, tenantId: str) -> Response:
        made = self.perform(new_keys, self.one(tenantId), shown_once=True)
        return self.to_response(TenantKeysContract, made)

    def one(self, tenant_id: str) -> Tenant:
        return get_or_404(self.rows, tenant_id, "public_id")


def newest_keys(tenant: Tenant) -> dict[str, ApiKey]:
    """Of each kind the newest live key that is not about to end."""
    rows = ApiKey.live().filter(tenant=tenant, expires_at=None).order_by("pk")
    return {key.kind: key for key in rows}


def readable_keys(tenant: Tenant) -> dict[str, str]:
    """409 `keys_not_readable` where keys are shown only once, or were not kept."""
    newest = newest_keys(tenant)
    readable = settings.PROVIDER_KEYS_READABLE and all(
        kind in newest and newest[kind].sealed for kind in TENANT_KINDS
    )
    if not readable:
        message = "These keys were shown once and cannot be read. PATCH makes new ones."
        raise Conflict("keys_not_readable", message)
    return {
        MEMBERS[kind]: vault.unseal(newest[kind], "sealed") for kind in TENANT_KINDS
    }


@transaction.atomic
def new_keys(tenant: Tenant) -> dict[str, str]:
    """Holds the organization's row: of two changes at once the later one has the newest keys."""
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    newest = newest_keys(tenant)
    return {
        MEMBERS[kind]: (
            newest[kind].rotate()
            if kind in newest
            else ApiKey.issue(kind, tenant, "Provider")
        )[1]
        for kind in TENANT_KINDS
    }


@extend_schema(tags=["Provider"])
class ProviderAssets(ProviderView):
    parser_classes = [assets.PictureFormParser, JSONParser]

    @extend_schema(
        operation_id="addAsset",
        summary="Publish a picture",
        request={"multipart/form-data": PictureParameters},
        responses=AssetContract,
        examples=[
            OpenApiExample(
                "Its address",
                {
                    "publicUri": "https://agency.example/assets/3q2-7wAbCdEfGhIjKlMnOp.png"
                },
                response_only=True,
            )
        ],
    )
    def create(self, request: Request) -> Response:
        asset = self.perform(assets.store, self.provider, assets.uploaded(request.data))
        return self.to_response(AssetContract, asset)


@extend_schema(tags=["Provider"])
class Analytics(ProviderView):
    @extend_schema(
        operation_id="getCloudWalletCount",
        summary="How many wallets the account's organizations host",
        responses=CloudWalletAnalyticsContract,
        examples=[OpenApiExample("Some", {"total": 42}, response_only=True)],
    )
    def wallets(self, request: Request) -> Response:
        return self.to_response(
            CloudWalletAnalyticsContract, usage.count_cloud_wallets(self.provider)
        )

    @extend_schema(
        operation_id="getCurrentUsage",
        summary="What was issued and verified this month (UTC)",
        responses=UsageContract,
        examples=[MONTH],
    )
    def current(self, request: Request) -> Response:
        return self.to_response(
            UsageContract, usage.by_month(self.provider, timezone.now(), 1)[0]
        )

    @extend_schema(
        operation_id="searchUsage",
        summary="What was issued and verified, by month, newest first, 24 months at most",
        responses=UsageContract(many=True),
        examples=[MONTH],
    )
    def search(self, request: Request) -> Response:
        months = usage.by_month(self.provider, timezone.now())
        return Response(UsageContract(months, many=True).data)


@extend_schema(tags=["Provider"])
class ProviderNetworks(ProviderView):
    @extend_schema(
        operation_id="listProviderNetworks",
        summary="List the networks",
        responses=NetworkContract(many=True),
        examples=[NETWORK],
    )
    def list(self, request: Request) -> Response:
        return Response(NetworkContract(networks(), many=True).data)

    @extend_schema(
        operation_id="getRegions",
        summary="The regions by id",
        responses={
            (200, "application/json"): {
                "type": "object",
                "additionalProperties": {"type": "string"},
            }
        },
        examples=[
            OpenApiExample(
                "One", {"UnitedStates": "United States"}, response_only=True
            ),
        ],
    )
    def regions(self, request: Request) -> Response:
        return Response(settings.REGIONS)
