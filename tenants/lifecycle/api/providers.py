"""The provider API: the organizations of a provider account, by the account's key."""

from django.conf import settings
from django.db.models import Model, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.authentication import ProviderAuthentication, ProviderCaller
from core.api.negotiation import JSONParser
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import View, get_or_404
from tenants import audit, pictures
from tenants.lifecycle import provider_keys, usage
from tenants.lifecycle.api.assets import PictureFormParser, read_upload
from tenants.lifecycle.api.organizations import (
    all_networks,
    change_from_parameters,
    create_from_parameters,
    with_issuer,
)
from tenants.lifecycle.api.serializers import (
    AssetContract,
    CloudWalletAnalyticsContract,
    NetworkContract,
    PictureParameters,
    TenantContract,
    TenantKeysContract,
    TenantParameters,
    TenantQuery,
    TenantUpdateParameters,
    UndoParameters,
    UsageContract,
)
from tenants.lifecycle.deletion import end_deletion, undo_deletion
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import Provider, Tenant
from wallets.models import Wallet


class ProviderView(View):
    """A view of the provider API. It ignores the subscription key."""

    authentication_classes = [ProviderAuthentication]

    @property
    def provider(self) -> Provider:
        caller: object = self.request.user
        assert isinstance(caller, ProviderCaller)
        return caller.provider

    @property
    def owner(self) -> dict[str, Model]:
        return {"provider": self.provider}

    @property
    def rows(self) -> QuerySet[Tenant]:
        """The organizations that the account created, as their contract needs them."""
        return with_issuer(usage.tenants_of(self.provider))


class ProviderTenants(ProviderView):
    @operation(
        "listProviderTenants",
        None,
        response=TenantContract(many=True),
        parameters=list_parameters(TenantQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(TenantContract, self.rows, TenantQuery)

    @operation(
        "createProviderTenant", None, request=TenantParameters, response=TenantContract
    )
    def create(self, request: Request) -> Response:
        made = create_from_parameters(self, self.provider)
        return self.to_response(TenantContract, self.rows.get(pk=made.pk))

    @operation("deleteAllProviderTenants", None)
    def destroy_all(self, request: Request) -> Response:
        # One transaction each: a repeated call deletes what is left. An organization
        # that is being moved stops it (503); one that is deleted soon is deleted now.
        for tenant in self.rows:
            remove_organization(tenant, by=request)
        return Response()

    @operation("getProviderTenant", None, response=TenantContract)
    def retrieve(self, request: Request, tenantId: str) -> Response:
        return self.to_response(TenantContract, self.get_tenant(tenantId))

    @operation("updateProviderTenant", None, request=TenantUpdateParameters)
    def update(self, request: Request, tenantId: str) -> Response:
        tenant = self.get_tenant(tenantId)
        change_from_parameters(self, tenant)
        return Response()

    @operation("deleteProviderTenant", None)
    def destroy(self, request: Request, tenantId: str) -> Response:
        # Of an organization that is deleted soon, this ends the time in which that
        # could be undone.
        remove_organization(self.find_tenant(tenantId), by=request)
        return Response()

    @operation("undoTenantDeletion", None, request=UndoParameters, irreversible=True)
    def undo_deletion(self, request: Request, tenantId: str) -> Response:
        tenant = self.find_tenant(tenantId)
        revokes_key = self.parse_body(UndoParameters)["revokeKey"]
        self.perform(undo_deletion, tenant, by=request, revokes_key=revokes_key)
        return Response()

    @operation("endTenantDeletion", None, irreversible=True)
    def end_deletion(self, request: Request, tenantId: str) -> Response:
        # It is found inside: a call that is sent again finds it no more.
        self.perform(lambda: end_deletion(self.find_tenant(tenantId), by=request))
        return Response()

    @operation("getProviderTenantKeys", None, response=TenantKeysContract)
    def show_keys(self, request: Request, tenantId: str) -> Response:
        keys = provider_keys.read_newest_keys(self.get_tenant(tenantId))
        return self.to_response(TenantKeysContract, keys)

    @operation(
        "changeProviderTenantKeys",
        None,
        response=TenantKeysContract,
        irreversible=True,
    )
    def change_keys(self, request: Request, tenantId: str) -> Response:
        tenant = self.get_tenant(tenantId)
        rotate = audit.recorded(
            provider_keys.rotate_newest_keys, "key.rotated", tenant, by=request
        )
        # Shown once: a repeated call with the same Idempotency-Key gets a 409.
        made = self.perform(rotate, tenant, shown_once=True)
        return self.to_response(TenantKeysContract, made)

    def get_tenant(self, tenant_id: str) -> Tenant:
        """The organization, or 404; 503 while it is moved or deleted soon."""
        tenant = self.find_tenant(tenant_id)
        tenant.require_thawed()
        return tenant

    def find_tenant(self, tenant_id: str) -> Tenant:
        return get_or_404(self.rows, tenant_id, "public_id")


class ProviderAssets(ProviderView):
    parser_classes = [PictureFormParser, JSONParser]

    @operation(
        "addAsset",
        None,
        request={"multipart/form-data": PictureParameters},
        response=AssetContract,
    )
    def create(self, request: Request) -> Response:
        picture = read_upload(request.data)
        asset = self.perform(pictures.store_picture, self.provider, picture)
        return self.to_response(AssetContract, asset)


class Analytics(ProviderView):
    @operation("getCloudWalletCount", None, response=CloudWalletAnalyticsContract)
    def count_wallets(self, request: Request) -> Response:
        tenants = usage.tenants_of(self.provider)
        hosted = Wallet.objects.filter(tenant__in=tenants, is_organization=False)
        return self.to_response(CloudWalletAnalyticsContract, hosted.count())

    @operation("getCurrentUsage", None, response=UsageContract)
    def current_usage(self, request: Request) -> Response:
        months = usage.usage_by_month(self.provider, timezone.now(), months=1)
        return self.to_response(UsageContract, months[0])

    @operation("searchUsage", None, response=UsageContract(many=True))
    def search_usage(self, request: Request) -> Response:
        months = usage.usage_by_month(self.provider, timezone.now())
        return Response(UsageContract(months, many=True).data)


class ProviderNetworks(ProviderView):
    @operation("listProviderNetworks", None, response=NetworkContract(many=True))
    def list(self, request: Request) -> Response:
        return Response(NetworkContract.show_all(all_networks()))

    @operation(
        "getRegions",
        None,
        response={
            (200, "application/json"): {
                "type": "object",
                "additionalProperties": {"type": "string"},
            }
        },
    )
    def list_regions(self, request: Request) -> Response:
        return Response(settings.REGIONS)
