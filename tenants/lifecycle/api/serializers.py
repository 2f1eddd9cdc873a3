"""Shapes of organizations, networks and usage in the API."""

import re
import uuid
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from drf_spectacular.utils import OpenApiTypes, extend_schema_field
from rest_framework import serializers

from connections.api.serializers import AgentEndpoint
from connections.models import didcomm_endpoint
from core.api import dialects
from core.api.pagination import (
    BY_CREATION,
    BY_NAME,
    BY_UPDATE,
    ChangingQuery,
    NamedQuery,
)
from core.api.serializers import (
    Contract,
    IntegerField,
    Parameters,
    SharedFields,
    TextOptions,
    drop_nulls,
)
from credentials.ledgers.base import Agreement
from tenants import branding
from tenants.branding import WalletAppLinks
from tenants.lifecycle.networks import IssuerStatus
from tenants.lifecycle.provisioning import read_seed
from tenants.models import Network, Tenant
from tenants.models.organizations import MAX_VISITOR_WALLETS
from webhooks.api.serializers import WebAddressField

Given = TypeVar("Given")
Result = TypeVar("Result")

SHORT_QR_CODES = (
    "Whether QR codes of invitations hold the short link, not the invitation itself."
)
INVALID_PROOF_ANSWER = (
    "How a wallet learns that its proof is not valid: by a problem report (the "
    "default), or by an ack with `verification_result` false, as from ACA-Py."
)
INVALID_PROOF_ANSWERS = [(str(one), str(one)) for one in Tenant.InvalidProofAnswer]
OWN_WALLET_API = (
    "Whether the wallet API takes the id of the organization's own wallet, so that the "
    "organization can hold credentials and prove."
)
VISITOR_WALLETS = (
    "Whether the page of a link of the organization offers a web wallet to visitors."
)
VISITOR_WALLETS_A_DAY = (
    "How many wallets visitors make in a day by one link that many may use."
)
IS_TEST = (
    "Whether it is for tests only: it has simulated holders, and its data is deleted "
    "after 30 days. This cannot be changed."
)
INVITATION_PROTOCOLS = [(str(one), str(one)) for one in Tenant.InvitationProtocol]
INVITATION_PROTOCOL = (
    "How invitations, and links of offers and requests, are written unless the call "
    "says it (`protocol`). `both`: connections/1.0 and out-of-band in one link; offers "
    "and requests are then out-of-band. Original clients get connections/1.0 in the "
    "link."
)
ENDORSERS = [(str(one), str(one)) for one in Tenant.Endorser]
# uuid.UUID() also reads braces, `urn:`, and texts without hyphens.
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


class SeedField(serializers.CharField):
    """The 32 bytes of an issuer's seed, as 32 ASCII characters or as base64."""

    def __init__(self, **options: Unpack[TextOptions]) -> None:
        super().__init__(max_length=64, trim_whitespace=False, **options)

    def to_internal_value(self, data: str) -> bytes:  # type: ignore[override]
        try:
            return read_seed(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class EndorserField(serializers.ChoiceField):
    """The oldest clients send the number of the choice."""

    def to_internal_value(self, data: Any) -> str:
        if type(data) is int and 0 <= data < len(ENDORSERS):
            data = ENDORSERS[data][0]
        return super().to_internal_value(data)


class TenantIdField(serializers.CharField):
    """An id that the caller may choose: a UUID in its usual form."""

    def to_internal_value(self, data: str) -> uuid.UUID:  # type: ignore[override]
        text = super().to_internal_value(data)
        if not UUID_TEXT.fullmatch(text):
            raise serializers.ValidationError("Give a UUID, or leave it out.")
        return uuid.UUID(text)


class ColorField(serializers.CharField):
    def to_internal_value(self, data: str) -> str:
        return clean_or_400(branding.clean_color, super().to_internal_value(data))


class ReturnUrlsField(serializers.ListField):
    child = serializers.CharField(max_length=branding.MAX_URL)

    def to_internal_value(self, data: list[str]) -> list[str]:
        return clean_or_400(branding.clean_return_urls, super().to_internal_value(data))


class WalletApp(SharedFields):
    name = serializers.CharField(max_length=branding.MAX_APP_NAME)
    urls = serializers.ListField(
        child=serializers.CharField(max_length=branding.MAX_URL),
        min_length=1,
        max_length=branding.MAX_APP_URLS,
        help_text="Where it can be installed, as in a store.",
    )


class WalletAppsField(serializers.ListField):
    child = WalletApp()

    def to_internal_value(self, data: list[WalletAppLinks]) -> list[WalletAppLinks]:
        return clean_or_400(branding.clean_wallet_apps, super().to_internal_value(data))


def clean_or_400(function: Callable[[Given], Result], value: Given) -> Result:
    """The result of a function of tenants/branding.py, or a 400 with its sentence."""
    try:
        return function(value)
    except ValueError as error:
        raise serializers.ValidationError(str(error)) from None


LANGUAGES = ["", *branding.LANGUAGES]


@extend_schema_field({"type": "string", "enum": LANGUAGES})
class LanguageField(serializers.ChoiceField):
    """The code of a language; empty: none."""


class OrganizationOptions(Parameters):
    """What an organization may choose when it is made, and change later.

    Validated, each member has the name of its column.
    """

    aliases = {"image_url": "imageUrl"}

    imageUrl = WebAddressField(source="image_url", required=False, allow_blank=True)
    shortQrCodes = serializers.BooleanField(
        source="short_qr_codes", required=False, help_text=SHORT_QR_CODES
    )
    invalidProofAnswer = serializers.ChoiceField(
        INVALID_PROOF_ANSWERS,
        source="invalid_proof_answer",
        required=False,
        help_text=INVALID_PROOF_ANSWER,
    )
    invitationProtocol = serializers.ChoiceField(
        INVITATION_PROTOCOLS,
        source="invitation_protocol",
        required=False,
        help_text=INVITATION_PROTOCOL,
    )
    ownWalletApi = serializers.BooleanField(
        source="own_wallet_api", required=False, help_text=OWN_WALLET_API
    )
    visitorWallets = serializers.BooleanField(
        source="visitor_wallets", required=False, help_text=VISITOR_WALLETS
    )
    visitorWalletsPerDay = IntegerField(
        source="visitor_wallets_a_day",
        required=False,
        min_value=1,
        max_value=MAX_VISITOR_WALLETS,
        help_text=VISITOR_WALLETS_A_DAY,
    )
    primaryColor = ColorField(
        source="primary_color",
        required=False,
        allow_blank=True,
        help_text="Of buttons and links, as in #0b6b62. It is changed where it could "
        "not be read.",
    )
    secondaryColor = ColorField(
        source="secondary_color",
        required=False,
        allow_blank=True,
        help_text="Behind the name of the organization.",
    )
    defaultLanguage = LanguageField(
        LANGUAGES,
        source="default_language",
        required=False,
        help_text="For readers whose browser names none of the languages; empty: none.",
    )
    walletApps = WalletAppsField(
        source="wallet_apps",
        required=False,
        max_length=branding.MAX_WALLET_APPS,
        help_text="The wallet apps that are recommended to holders.",
    )
    returnUrls = ReturnUrlsField(
        source="return_urls",
        required=False,
        max_length=branding.MAX_RETURN_URLS,
        help_text="The addresses below which a `returnUrl` may lead.",
    )


class TenantParameters(OrganizationOptions):
    aliases = OrganizationOptions.aliases | {
        "issuer_seed": "issuerSeed",
        "network_id": "networkId",
        "endorser_type": "endorserType",
    }

    name = serializers.CharField(max_length=200)
    networkId = serializers.CharField(
        source="network_id", required=False, max_length=50
    )
    host = serializers.CharField(
        required=False,
        max_length=253,
        help_text="On the network `webvh`: a domain that leads here, for life. By "
        "default that of the installation.",
    )
    issuerSeed = SeedField(source="seed", required=False)
    endorserType = EndorserField(ENDORSERS, source="endorser", required=False)
    tenantId = TenantIdField(source="public_id", required=False)
    region = serializers.CharField(required=False, max_length=100, allow_blank=True)
    isTest = serializers.BooleanField(
        source="is_test", required=False, help_text=IS_TEST
    )


class TenantUpdateParameters(OrganizationOptions):
    """What is absent stays; an empty imageUrl takes the picture away."""

    name = serializers.CharField(required=False, max_length=200)


class NetworkContract(Contract[Network]):
    networkId = serializers.CharField(source="pk")
    networkName = serializers.CharField(source="name")
    genesisTransactions = serializers.CharField(
        source="genesis", required=False, help_text="Of an Indy network."
    )
    poolProtocolVersion = serializers.IntegerField(
        required=False, help_text="Of an Indy network."
    )

    def get_poolProtocolVersion(self, network: Network) -> int | None:
        return 2 if network.kind == Network.Kind.INDY else None


class TenantExtendedInformation(serializers.Serializer):
    issuerDid = serializers.CharField()
    issuerKey = serializers.CharField()
    agentDid = serializers.CharField()
    agentKey = serializers.CharField()
    agentServiceEndpoint = serializers.CharField()
    transactionEndorsement = serializers.ChoiceField(ENDORSERS)


class TenantQuery(ChangingQuery, NamedQuery):
    sorts = BY_CREATION | BY_UPDATE | BY_NAME


class UndoParameters(Parameters):
    revokeKey = serializers.BooleanField(
        default=False,
        help_text="Whether to revoke the key that asked for the deletion.",
    )


class TenantContract(Contract[Tenant]):
    """An organization, of rows that `with_issuer` has annotated. Seeds are never shown."""

    tenantId = serializers.CharField(source="public_id")
    name = serializers.CharField()
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    imageUrl = serializers.CharField(source="image_url", required=False)
    network = NetworkContract()
    region = serializers.CharField(required=False)
    shortQrCodes = serializers.BooleanField(
        source="short_qr_codes", help_text=SHORT_QR_CODES
    )
    invitationProtocol = serializers.ChoiceField(
        INVITATION_PROTOCOLS,
        source="invitation_protocol",
        help_text=INVITATION_PROTOCOL,
    )
    invalidProofAnswer = serializers.ChoiceField(
        INVALID_PROOF_ANSWERS,
        source="invalid_proof_answer",
        help_text=INVALID_PROOF_ANSWER,
    )
    ownWalletApi = serializers.BooleanField(
        source="own_wallet_api", help_text=OWN_WALLET_API
    )
    visitorWallets = serializers.BooleanField(
        source="visitor_wallets", help_text=VISITOR_WALLETS
    )
    visitorWalletsPerDay = serializers.IntegerField(
        source="visitor_wallets_a_day", help_text=VISITOR_WALLETS_A_DAY
    )
    isTest = serializers.BooleanField(source="is_test", help_text=IS_TEST)
    deletionDueAtUtc = serializers.DateTimeField(
        source="deletion_due_at",
        required=False,
        help_text="When it will be deleted, if one of its keys has asked for that.",
    )
    ownWalletId = serializers.CharField(
        source="own_wallet_id",
        help_text="The id of its own wallet, for the wallet API.",
    )
    primaryColor = serializers.CharField(source="primary_color", required=False)
    secondaryColor = serializers.CharField(source="secondary_color", required=False)
    defaultLanguage = serializers.CharField(source="default_language", required=False)
    walletApps = WalletApp(many=True, required=False)
    returnUrls = serializers.ListField(child=serializers.CharField(), required=False)
    extendedInformation = TenantExtendedInformation()

    def get_walletApps(self, tenant: Tenant) -> list[WalletAppLinks] | None:
        return tenant.wallet_apps or None

    def get_returnUrls(self, tenant: Tenant) -> list[str] | None:
        return tenant.return_urls or None

    def get_extendedInformation(self, tenant: Tenant) -> dict[str, str]:
        return {
            "issuerDid": tenant.issuer_did,
            "issuerKey": tenant.issuer_key,
            "agentDid": tenant.issuer_did,
            "agentKey": tenant.issuer_key,
            "agentServiceEndpoint": didcomm_endpoint(),
            "transactionEndorsement": tenant.endorser,
        }


class TenantKeysContract(Contract):
    accessToken = serializers.CharField(source="access_token")
    subscriptionKey = serializers.CharField(source="subscription_key")


class IssuerStatusContract(Contract[IssuerStatus]):
    """Describes an IssuerStatus. The context has the organization's `endorser`.

    On the local network nothing is asked, and every DID writes for itself.

    The agreement is the one in force; acceptanceTime says that it was accepted.
    """

    acceptanceText = serializers.CharField(required=False)
    acceptanceVersion = serializers.CharField(required=False)
    acceptanceDigest = serializers.CharField(required=False)
    acceptanceTime = serializers.IntegerField(required=False)
    requireAcceptance = serializers.BooleanField()
    transactionEndorsement = serializers.ChoiceField(ENDORSERS)
    issuerCanEndorse = serializers.BooleanField(
        help_text="The DID has a role on the ledger."
    )
    issuerRegistered = serializers.BooleanField(
        help_text="The DID stands on the ledger."
    )
    problem = serializers.CharField(
        required=False, help_text="Why it cannot write yet."
    )

    def to_representation(self, status: IssuerStatus) -> dict[str, object]:
        agreement, acceptance = status.agreement, status.acceptance
        return drop_nulls(
            acceptanceText=agreement and agreement.text,
            acceptanceVersion=agreement and agreement.version,
            acceptanceDigest=agreement and agreement.digest,
            acceptanceTime=acceptance and int(acceptance.accepted_at.timestamp()),
            requireAcceptance=bool(agreement and not acceptance),
            transactionEndorsement=self.context["endorser"],
            issuerCanEndorse=status.may_write,
            issuerRegistered=status.is_registered,
            problem=status.problem or None,
        )


class NetworkAgreementContract(Contract[Agreement]):
    """The transaction author agreement in force; empty where a network has none."""

    text = serializers.CharField(required=False)
    version = serializers.CharField(required=False)
    acceptanceMethods = serializers.DictField(
        source="mechanisms", child=serializers.CharField(), required=False
    )


class ProvisioningInfo(Contract[Tenant]):
    issuerDid = serializers.CharField(source="issuer_did")
    name = serializers.CharField()
    imageUrl = serializers.CharField(source="image_url", required=False)
    endpoint = AgentEndpoint()

    def get_endpoint(self, tenant: Tenant) -> dict[str, object]:
        verkey = dialects.endpoint_verkey(self.context["request"], tenant.issuer_key)
        return {
            "did": tenant.issuer_did,
            "verkey": verkey,
            "uri": didcomm_endpoint(),
        }


@extend_schema_field(OpenApiTypes.BINARY)
class BinaryField(serializers.FileField):
    """A file of a form."""


class PictureParameters(serializers.Serializer):
    uploadedFiles = BinaryField(help_text="A PNG, JPEG, WebP or GIF.")
    filename = serializers.CharField(required=False, help_text="Ignored.")
    contentType = serializers.CharField(
        required=False, help_text="Ignored: the content decides what it is."
    )


class AssetContract(Contract):
    publicUri = serializers.CharField(source="address")


class CloudWalletAnalyticsContract(Contract[int]):
    total = serializers.IntegerField()

    def get_total(self, total: int) -> int:
        return total


class UsageContract(Contract):
    periodStart = serializers.DateTimeField(source="start")
    periodEnd = serializers.DateTimeField(source="end")
    credentialCount = serializers.IntegerField(source="credentials")
    verificationCount = serializers.IntegerField(source="verifications")
