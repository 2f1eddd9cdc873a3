"""What wallets read of an issuer (OpenID4VCI 1.0 section 12, RFC 8414)."""

from typing import Any
from uuid import UUID

from django.conf import settings

from credentials.models import CredentialDefinition
from credentials.models.definition import WITH_FORMATS
from credentials.openid4vci.offers import CODE_GRANT, configuration_id
from tenants.models import Tenant
from wallets.jose import signing
from wallets.models import SigningKey, issuer_url

SIGNED_TYP = "openidvci-issuer-metadata+jwt"
ALGORITHMS = ["ES256"]
Metadata = dict[str, Any]


def issuer_metadata(tenant: Tenant) -> Metadata:
    """What the organization issues. Each definition is a configuration."""
    issuer = issuer_url(tenant.pk)
    rows = CredentialDefinition.active_of(tenant).filter(other_formats__isnull=False)
    definitions = rows.defer("private_key", "key_proof").order_by("pk")
    display: Metadata = {"name": tenant.name}
    if tenant.image_url:
        display["logo"] = {"uri": tenant.image_url}
    return {
        "credential_issuer": issuer,
        "credential_endpoint": f"{issuer}/credential",
        "nonce_endpoint": f"{issuer}/nonce",
        "deferred_credential_endpoint": f"{issuer}/deferred_credential",
        "notification_endpoint": f"{issuer}/notification",
        "display": [display],
        "credential_configurations_supported": {
            configuration_id(one): configuration_of(one)
            for one in definitions.prefetch_related(WITH_FORMATS)
        },
    }


def configuration_of(definition: CredentialDefinition) -> Metadata:
    found = definition.sd_jwt
    assert found, "it is issued as SD-JWT VC"
    return {
        "format": str(found.format),
        "vct": found.type_id,
        "cryptographic_binding_methods_supported": ["jwk"],
        "credential_signing_alg_values_supported": ALGORITHMS,
        "proof_types_supported": {
            "jwt": {"proof_signing_alg_values_supported": ALGORITHMS}
        },
        "credential_metadata": {
            "display": credential_display(definition),
            "claims": [
                {"path": path} | ({"display": labels} if labels else {})
                for path, labels in claims_of(definition)
            ],
        },
    }


def credential_display(definition: CredentialDefinition) -> list[Metadata]:
    """By language; in one without a language if there are no names."""
    chosen = definition.design
    look: Metadata = {}
    if background := chosen.get("colors", {}).get("background"):
        look["background_color"] = background
    if text := chosen.get("colors", {}).get("text"):
        look["text_color"] = text
    if logo := chosen.get("logo"):
        look["logo"] = {"uri": logo}
    if picture := chosen.get("picture"):
        look["background_image"] = {"uri": picture}
    names = chosen.get("names")
    if not names:
        return [{"name": definition.schema.name} | look]
    return [
        {"name": name, "locale": language} | look for language, name in names.items()
    ]


def claims_of(
    definition: CredentialDefinition,
) -> list[tuple[list[str], list[dict[str, str]]]]:
    """The path of each claim, with its labels."""
    assert definition.sd_jwt
    labels = definition.design.get("labels", {})
    names = [
        *definition.schema.attribute_names,
        *(claim["name"] for claim in definition.sd_jwt.derived_claims),
    ]
    return [
        (
            [name],
            [
                {"name": label, "locale": language}
                for language, label in labels.get(name, {}).items()
            ],
        )
        for name in names
    ]


def sign_metadata(tenant: Tenant, issued_at: int) -> str:
    """The issuer's metadata as a token that the organization signs."""
    key = SigningKey.of(tenant, SigningKey.Purpose.CREDENTIALS)
    claims = {"sub": issuer_url(tenant.pk), "iat": issued_at}
    return key.sign(claims | issuer_metadata(tenant), SIGNED_TYP)


def server_metadata(tenant: Tenant) -> Metadata:
    """The organization as authorization server of its own credentials."""
    issuer = issuer_url(tenant.pk)
    return {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/token",
        "grant_types_supported": [CODE_GRANT],
        "response_types_supported": ["none"],
        "token_endpoint_auth_methods_supported": ["none"],
        "dpop_signing_alg_values_supported": ALGORITHMS,
        "pre-authorized_grant_anonymous_access_supported": True,
    }


def vc_issuer_metadata(tenant: Tenant) -> Metadata:
    """The key of its SD-JWT VCs (SD-JWT VC, jwt-vc-issuer)."""
    key = SigningKey.of(tenant, SigningKey.Purpose.CREDENTIALS)
    return describe_key(tenant.pk, signing.public_jwk_of(key.unseal_secret()))


def describe_key(tenant_id: UUID, jwk: signing.JWK) -> Metadata:
    named = jwk | {"kid": signing.thumbprint_of(jwk), "use": "sig", "alg": "ES256"}
    return {"issuer": issuer_url(tenant_id), "jwks": {"keys": [named]}}


def key_url(tenant_id: UUID, base: str | None = None) -> str:
    """Where the key of credentials is read: between host and path (RFC 8414)."""
    host = settings.PUBLIC_URL if base is None else base
    return f"{host}/.well-known/jwt-vc-issuer/openid/{tenant_id}"


def type_metadata(definition: CredentialDefinition) -> Metadata:
    """What the type of a definition means (SD-JWT VC, type metadata)."""
    found = definition.sd_jwt
    assert found, "it is issued as SD-JWT VC"
    display = [
        {"name": one["name"], "locale": one.get("locale", "en")}
        for one in credential_display(definition)
    ]
    claims = []
    for path, labels in claims_of(definition):
        claim: Metadata = {"path": path, "sd": "always"}
        if labels:
            claim["display"] = [
                {"label": one["name"], "locale": one["locale"]} for one in labels
            ]
        claims.append(claim)
    return {
        "vct": found.type_id,
        "name": definition.schema.name,
        "display": display,
        "claims": claims,
    }
