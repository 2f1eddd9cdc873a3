"""The organization, the networks and public pictures, in the credentials API."""

from django.db.models import OuterRef, QuerySet, Subquery
from drf_spectacular.utils import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.negotiation import JSONParser
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import View, get_or_404
from core.errors import NotFound
from credentials.ledgers import ledger_of
from tenants import audit, pictures
from tenants.lifecycle.api.assets import PictureFormParser, read_upload
from tenants.lifecycle.api.serializers import (
    IssuerStatusContract,
    NetworkAgreementContract,
    NetworkContract,
    PictureParameters,
    ProvisioningInfo,
    TenantContract,
    TenantParameters,
    TenantQuery,
    TenantUpdateParameters,
)
from tenants.lifecycle.deletion import request_deletion
from tenants.lifecycle.networks import accept_agreement, issuer_status
from tenants.lifecycle.provisioning import (
    LOCAL,
    all_networks,
    change_organization,
    create_provider_organization,
    require_host,
    require_network,
    resolve_network,
)
from tenants.models import Provider, Scope, Tenant
from wallets.models import Key, Wallet


def with_issuer(rows: QuerySet[Tenant]) -> QuerySet[Tenant]:
    """Organizations with their network and, of their own wallet, DID and verkey."""
    wallets = Wallet.objects.filter(tenant=OuterRef("pk"), is_organization=True)
    # Of one wallet, not joined: then the first key is found by an index, among many.
    own = Wallet.objects.filter(tenant=OuterRef(OuterRef("pk")), is_organization=True)
    keys = Key.objects.filter(wallet=Subquery(own.values("pk")[:1]))
    return rows.select_related(
        "network"
    ).annotate(  # type: ignore[no-redef]
        issuer_did=Subquery(wallets.values(did_shown=Wallet.with_issuer_did())[:1]),
        own_wallet_id=Subquery(wallets.values("wallet_id")[:1]),
        issuer_key=Subquery(keys.order_by("pk").values("verkey")[:1]),
    )


def create_from_parameters(view: View, provider: Provider) -> Tenant:
    """Create another organization of the account, as this call wants it.

    In one transaction with the audit entry. Its host is asked before.
    """
    wanted = view.parse_body(TenantParameters)
    # What is empty keeps its default.
    chosen = {column: value for column, value in wanted.items() if value}
    host = chosen.pop("host", "")

    def create(host: str) -> Tenant:
        return create_provider_organization(provider, host=host, **chosen)

    return view.perform(
        audit.recorded(create, "organization.created", by=view.request),
        prepare=lambda: require_host(chosen.get("network_id"), host, provider),
    )


def change_from_parameters(view: View, tenant: Tenant) -> None:
    """Change what the TenantUpdateParameters of this call name, and record it."""
    changes = dict(view.parse_body(TenantUpdateParameters))
    view.perform(change_organization, tenant, changes, by=view.request)


class Tenants(View):
    @property
    def rows(self) -> QuerySet[Tenant]:
        """A token reaches its own organization only."""
        return with_issuer(Tenant.objects.filter(pk=self.tenant.pk))

    @operation(
        "listTenants",
        Scope.READ,
        response=TenantContract(many=True),
        parameters=list_parameters(TenantQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(TenantContract, self.rows, TenantQuery)

    @operation(
        "createTenant",
        Scope.ADMINISTRATION,
        request=TenantParameters,
        response=TenantContract,
    )
    def create(self, request: Request) -> Response:
        made = create_from_parameters(self, self.tenant.provider)
        return self.to_response(
            TenantContract, with_issuer(Tenant.objects.filter(pk=made.pk)).get()
        )

    @operation("getTenant", Scope.READ, response=TenantContract)
    def retrieve(self, request: Request, tenantId: str) -> Response:
        return self.to_response(
            TenantContract, get_or_404(self.rows, tenantId, "public_id")
        )

    @operation(
        "updateTenant",
        Scope.ADMINISTRATION,
        request=TenantUpdateParameters,
        response=TenantContract,
    )
    def update(self, request: Request, tenantId: str) -> Response:
        tenant = get_or_404(self.rows, tenantId, "public_id")
        change_from_parameters(self, tenant)
        return self.to_response(TenantContract, self.rows.get())

    @operation("deleteTenant", Scope.ADMINISTRATION)
    def destroy(self, request: Request, tenantId: str) -> Response:
        tenant = get_or_404(self.rows, tenantId, "public_id")
        # Without perform(), as a DELETE takes no Idempotency-Key.
        request_deletion(tenant, by=request)
        return Response()

    @operation("getIssuerStatus", Scope.READ, response=IssuerStatusContract)
    def read_status(self, request: Request) -> Response:
        status = issuer_status(self.tenant)
        return self.to_response(
            IssuerStatusContract, status, endorser=self.tenant.endorser
        )


class Networks(View):
    @operation("listNetworks", Scope.READ, response=NetworkContract(many=True))
    def list(self, request: Request) -> Response:
        return Response(NetworkContract.show_all(all_networks()))

    @operation(
        "getTransactionAuthorAgreement", Scope.READ, response=NetworkAgreementContract
    )
    def read_agreement(self, request: Request, networkId: str) -> Response:
        require_network(LOCAL)  # creates it when it is first needed
        network = resolve_network(networkId)
        if not network:
            raise NotFound("not_found", "There is no such network.")
        agreement = ledger_of(network).agreement()
        return (
            self.to_response(NetworkAgreementContract, agreement)
            if agreement
            else Response({})
        )

    @operation("acceptTransactionAuthorAgreement", Scope.ADMINISTRATION)
    def accept_agreement(self, request: Request, networkId: str) -> Response:
        """Record that the organization accepts the agreement in force on its network.

        The path has the id of the network or, from original clients, of the
        organization.
        `prepare` reads the agreement from the ledger, before the transaction that
        stores the acceptance and its audit entry. 404 for the network of others.
        """
        tenant = self.tenant
        named = resolve_network(networkId)
        if named != tenant.network and networkId.lower() != str(tenant.public_id):
            raise NotFound(
                "not_found", "That is neither your organization nor its network."
            )
        read_in_force = ledger_of(tenant.network).agreement
        accept = audit.recorded(
            accept_agreement, "agreement.accepted", tenant, by=request
        )
        self.perform(accept, tenant.network, tenant, prepare=read_in_force)
        return Response()


class Pictures(View):
    parser_classes = [PictureFormParser, JSONParser]

    @operation(
        "uploadImage",
        Scope.ADMINISTRATION,
        request={"multipart/form-data": PictureParameters},
        response={(200, "application/json"): OpenApiTypes.STR},
    )
    def create(self, request: Request) -> Response:
        data = read_upload(request.data)
        return Response(
            self.perform(pictures.store_picture, self.tenant.provider, data).address
        )


class Configuration(View):
    @operation("getConfiguration", Scope.READ, response=ProvisioningInfo)
    def retrieve(self, request: Request) -> Response:
        return self.to_response(
            ProvisioningInfo,
            with_issuer(Tenant.objects.filter(pk=self.tenant.pk)).get(),
        )
