"""Offers to wallets of OpenID4VC: a link with a code that works once."""

import secrets
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.utils import timezone

from connections.exchange import Exchange
from connections.protocols import connectionless
from core.database.compiled_sql import CompiledQuery
from core.errors import Invalid
from core.text.bounded_json import Members
from core.work import transactions
from credentials.models import Credential, CredentialDefinition, CredentialFormat, Grant
from credentials.models.credential import Values
from credentials.models.definition import format_missing, normalised_names
from credentials.models.grant import digest_of
from tenants import vault
from tenants.models import Notes, Tenant
from wallets.models import Wallet, issuer_url

CODE_GRANT = "urn:ietf:params:oauth:grant-type:pre-authorized_code"
DIGITS = 6  # of a transaction code
VALID_FOR = timedelta(days=7)


@transactions.atomic()
def offer_by_link(
    wallet: Wallet,
    definition: CredentialDefinition,
    values: Values | None,
    automatic_issuance: bool = False,
    has_transaction_code: bool = False,
    notes: Notes | None = None,
    recipient_name: str = "",
) -> Credential:
    """Issuer: offer an SD-JWT VC in a link. The first wallet to take its code gets it.

    The link ends after VALID_FOR. The returned object has `transaction_code`, which is
    never readable again; "" without one.

    400 `values_missing` and the errors of check_offer(); 409 `format_missing`,
    `quota_exceeded`; 503 `organization_frozen`.
    """
    if definition.sd_jwt is None:
        raise format_missing(CredentialFormat.SD_JWT)
    if values is None:
        message = "An offer without a connection needs credentialValues."
        raise Invalid("values_missing", message, {"credentialValues": [message]})
    definition.check_offer(values, automatic_issuance)
    tenant = wallet.tenant
    connection = connectionless.create_link(
        wallet, wallet_link=partial(link_of, tenant)
    )
    end = timezone.now() + VALID_FOR
    connection.update_columns(expires_at=end, expiry_due_at=end)
    credential = Credential(
        tenant=tenant,
        wallet=wallet,
        connection=connection,
        role=Credential.Role.ISSUER,
        format=CredentialFormat.SD_JWT,
        thread_id=str(uuid4()),
        schema_id=definition.schema.schema_id,
        definition_id=definition.definition_id,
        attribute_names=normalised_names(definition.schema.attribute_names),
        automatic_issuance=automatic_issuance,
    )
    code = secrets.token_urlsafe(32)
    transaction_code = _draw_transaction_code() if has_transaction_code else ""
    offer = build_offer(tenant, definition, code, has_transaction_code)
    vault.seal(credential, "offer_body", offer)
    vault.seal(credential, "values", values)
    credential.name_recipient(definition, values, recipient_name)
    credential.set_notes(notes)
    credential.insert_within_quota()
    grant = Grant(tenant=tenant, credential=credential, code_digest=digest_of(code))
    vault.seal(grant, "transaction_code", transaction_code or None)
    grant.save(force_insert=True)
    credential.transaction_code = transaction_code
    return credential


def build_offer(
    tenant: Tenant,
    definition: CredentialDefinition,
    code: str,
    has_transaction_code: bool,
) -> Members:
    """The Credential Offer (OpenID4VCI 1.0 section 4.1.1)."""
    grant: Members = {"pre-authorized_code": code}
    if has_transaction_code:
        grant["tx_code"] = {"input_mode": "numeric", "length": DIGITS}
    return {
        "credential_issuer": issuer_url(tenant.pk),
        "credential_configuration_ids": [configuration_id(definition)],
        "grants": {CODE_GRANT: grant},
    }


def needs_code(offer: dict[str, Any]) -> bool:
    """Whether the holder needs a transaction code beside the link."""
    return "tx_code" in offer["grants"][CODE_GRANT]


def configuration_id(definition: CredentialDefinition) -> str:
    """How the metadata names the SD-JWT VCs of a definition."""
    return str(definition.pk)


def link_of(tenant: Tenant, token: str) -> str:
    address = f"{issuer_url(tenant.pk)}/offers/{token}"
    return f"openid-credential-offer://?{urlencode({'credential_offer_uri': address})}"


def find_offer(tenant: Tenant, token: str) -> Credential | None:
    """The offer in a link of the organization, whatever its state."""
    return _offer_behind_link.first(tenant.pk, token)


_offer_behind_link = CompiledQuery(
    lambda tenant_id, token: Credential.objects.filter(
        Exchange.behind_link(token),
        tenant=tenant_id,
        format=CredentialFormat.SD_JWT,
        role=Credential.Role.ISSUER,
    ).select_related("connection", "tenant"),
    UUID,
    str,
)


def _draw_transaction_code() -> str:
    return f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
