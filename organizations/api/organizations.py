"""The organization itself, the networks and public pictures, in the credentials API."""

from django.db.models import OuterRef, QuerySet, Subquery
from drf_spectacular.utils import OpenApiExample, OpenApiTypes, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agency.api.negotiation import JSONParser
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404
from agency.core.errors import NotFound
from credentials.ledgers import registry_of
from organizations.api.serializers import (
    IssuerStatusContract,
    NetworkAgreementContract,
    NetworkContract,
    PictureParameters,
    ProvisioningInfo,
    TenantContract,
    TenantParameters,
    TenantQuery,
)
from organizations.networks import accept
from organizations.provisioning import (
    LOCAL,
    create_organization_of,
    find_network,
    known_network,
    remove_organization,
)
from tenants import assets
from tenants.models import Network, Provider, Tenant
from wallets.models import Key, Wallet

DID, VERKEY = "2NW27jTLopL5zrDKb1Mmx5", "kLAQgihHxLWfmSWgbKTqb99Cn6t2nsiA8SULbA1mLi1"
ENDPOINT = "https://agency.example/didcomm"
NETWORK_OBJECT = {"networkId": "local", "networkName": "Local network"}
NETWORK = OpenApiExample("The local network", NETWORK_OBJECT, response_only=True)
TENANT = OpenApiExample(
    "An organization",
    {
        "tenantId": "0196f3a7-7777-7000-8000-000000000001",
        "name": "Registry office",
        "network": NETWORK_OBJECT,
        "shortQrCodes": False,
        "extendedInformation": {
            "issuerDid": DID,
            "issuerKey": VERKEY,
            "agentDid": DID,
            "agentKey": VERKEY,
            "agentServiceEndpoint": ENDPOINT,
            "transactionEndorsement": "Shared",
        },
    },
    response_only=True,
)
WANTED = OpenApiExample(
    "Another organization",
    {"name": "Registry office", "networkId": "local"},
    request_only=True,
)
STATUS = OpenApiExample(
    "It may write",
    {
        "requireAcceptance": False,
        "transactionEndorsement": "Shared",
        "issuerCanEndorse": True,
        "issuerRegistered": True,
    },
    response_only=True,
)
CONFIGURATION = OpenApiExample(
    "The organization",
    {
        "issuerDid": DID,
        "name": "Registry office",
        "endpoint": {"did": DID, "verkey": [VERKEY], "uri": ENDPOINT},
    },
    response_only=True,
)


def with_issuer(rows: QuerySet[Tenant]) -> QuerySet[Tenant]:
    """Organizations with their network and, of their own wallet, DID and verkey."""
    wallets = Wallet.objects.filter(tenant=OuterRef("pk"), is_organization=True)
    keys = Key.objects.filter(
        wallet__tenant=OuterRef("pk"), wallet__is_organization=True
    )
    return rows.select_related("network").annotate(
        issuer_did=Subquery(wallets.values("did")[:1]),
        issuer_key=Subquery(keys.order_by("pk").values("verkey")[:1]),
    )


def make(provider: Provider, wanted: dict) -> Tenant:
    """A further organization of the account, from validated TenantParameters."""
    fields = {
        "image_url": wanted.get("imageUrl"),
        "region": wanted.get("region"),
        "endorser": wanted.get("endorserType"),
        "short_qr_codes": wanted.get("shortQrCodes"),
    }
    return create_organization_of(
        provider,
        wanted["name"],
        network_id=wanted.get("networkId"),
        seed=wanted.get("issuerSeed"),
        public_id=wanted.get("tenantId"),
        **{name: value for name, value in fields.items() if value},
    )


def networks() -> QuerySet[Network]:
    """So few that they come in one answer."""
    find_network(LOCAL)
    return Network.objects.order_by("pk")


@extend_schema(tags=["Organizations"])
class Tenants(View):
    @property
    def rows(self) -> QuerySet[Tenant]:
        """A token reaches its own organization only."""
        return with_issuer(Tenant.objects.filter(pk=self.tenant.pk))

    @extend_schema(
        operation_id="listTenants",
        summary="List the organization of the token",
        parameters=parameters(TenantQuery),
        responses=TenantContract(many=True),
        examples=[TENANT],
    )
    def list(self, request: Request) -> Response:
        return self.list_response(TenantContract, self.rows, TenantQuery)

    @extend_schema(
        operation_id="createTenant",
        summary="Make another organization; the provider key of this one reaches it",
        request=TenantParameters,
        responses=TenantContract,
        examples=[WANTED, TENANT],
    )
    def create(self, request: Request) -> Response:
        made = self.perform(
            make, self.tenant.provider, self.parse_body(TenantParameters)
        )
        return self.to_response(
            TenantContract, with_issuer(Tenant.objects.filter(pk=made.pk)).get()
        )

    @extend_schema(
        operation_id="getTenant",
        summary="Read the organization of the token",
        responses=TenantContract,
        examples=[TENANT],
    )
    def retrieve(self, request: Request, tenantId: str) -> Response:
        return self.to_response(
            TenantContract, get_or_404(self.rows, tenantId, "public_id")
        )

    @extend_schema(
        operation_id="deleteTenant",
        summary="Delete the organization of the token with all that is in it",
        description="Ends its keys at once. What is published on the network stays.",
        request=None,
        responses=None,
    )
    def destroy(self, request: Request, tenantId: str) -> Response:
        remove_organization(get_or_404(self.rows, tenantId, "public_id"))
        return Response()

    @extend_schema(
        operation_id="getIssuerStatus",
        summary="Whether the organization may write to its network",
        responses=IssuerStatusContract,
        examples=[STATUS],
    )
    def status(self, request: Request) -> Response:
        return self.to_response(IssuerStatusContract, self.tenant)


@extend_schema(tags=["Organizations"])
class Networks(View):
    @extend_schema(
        operation_id="listNetworks",
        summary="List the networks",
        responses=NetworkContract(many=True),
        examples=[NETWORK],
    )
    def list(self, request: Request) -> Response:
        return Response(NetworkContract(networks(), many=True).data)

    @extend_schema(
        operation_id="getTransactionAuthorAgreement",
        summary="The agreement of a network; empty where there is none",
        responses=NetworkAgreementContract,
    )
    def agreement(self, request: Request, networkId: str) -> Response:
        find_network(LOCAL)
        network = known_network(networkId)
        if not network:
            raise NotFound("not_found", "There is no such network.")
        agreement = registry_of(network).agreement()
        return (
            self.to_response(NetworkAgreementContract, agreement)
            if agreement
            else Response({})
        )

    @extend_schema(
        operation_id="acceptTransactionAuthorAgreement",
        summary="Accept the agreement of the organization's network, if it has one",
        description="The path takes the id of the organization, or of its network.",
        request=None,
        responses=None,
    )
    def accept(self, request: Request, networkId: str) -> Response:
        tenant = self.tenant
        named = known_network(networkId)
        if named != tenant.network and networkId.lower() != str(tenant.public_id):
            raise NotFound(
                "not_found", "That is neither your organization nor its network."
            )
        in_force = registry_of(tenant.network).agreement
        self.perform(accept, tenant.network, tenant, prepare=in_force)
        return Response()


@extend_schema(tags=["Organizations"])
class Pictures(View):
    parser_classes = [assets.PictureFormParser, JSONParser]

    @extend_schema(
        operation_id="uploadImage",
        summary="Publish a picture; answers its address as a JSON string",
        request={"multipart/form-data": PictureParameters},
        responses={(200, "application/json"): OpenApiTypes.STR},
        examples=[
            OpenApiExample(
                "Its address",
                "https://agency.example/assets/3q2-7wAbCdEfGhIjKlMnOp.png",
                response_only=True,
            )
        ],
    )
    def create(self, request: Request) -> Response:
        data = assets.uploaded(request.data)
        return Response(self.perform(assets.store, self.tenant.provider, data).address)


@extend_schema(tags=["Wallets"])
class Configuration(View):
    @extend_schema(
        operation_id="getConfiguration",
        summary="The organization that hosts the wallets",
        deprecated=True,
        responses=ProvisioningInfo,
        examples=[CONFIGURATION],
    )
    def retrieve(self, request: Request) -> Response:
        return self.to_response(
            ProvisioningInfo,
            with_issuer(Tenant.objects.filter(pk=self.tenant.pk)).get(),
        )
