"""What stays of an organization that is deleted, for those who rely on its credentials.

Its status lists are signed once more, and its types and its public key are stored as
they are, in the transaction that destroys the keys.
"""

import json
import time
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from core.text import bounded_json
from credentials.models import DefinitionFormat, LastDocument, TokenStatusList
from credentials.openid4vci import metadata
from credentials.openid4vci.status_lists import TTL_SECONDS
from tenants.models import Tenant
from wallets.jose import signing, status_token
from wallets.models import SigningKey, issuer_url

VALID_SECONDS = 365 * 24 * 3600
JSON = "application/json"


class Signer(NamedTuple):
    """The key of credentials, to be used when it is destroyed already."""

    secret: bytes
    x5c: list[str]


def read_signer(tenant: Tenant) -> Signer | None:
    """Return the key of credentials. None if the organization has signed none."""
    rows = SigningKey.objects.filter(
        tenant=tenant, purpose=SigningKey.Purpose.CREDENTIALS
    )
    if not rows.exists():
        return None
    key = SigningKey.of(tenant, SigningKey.Purpose.CREDENTIALS)
    return Signer(key.unseal_secret(), key.x5c)


def keep_all(tenant: Tenant, signer: Signer) -> None:
    """Store what its addresses answer from now on, in the caller's transaction.

    That has the full lock on the organization, for which whoever changes a list makes
    it wait (Tenant.put_off_deletion): nothing is revoked meanwhile, or later.
    """
    now = int(time.time())
    times = {"iat": now, "exp": now + VALID_SECONDS, "ttl": TTL_SECONDS}
    for found in TokenStatusList.objects.filter(tenant=tenant).order_by("number"):
        text = status_token.make_token(
            bytes(found.bits), found.uri, times, signer.secret, signer.x5c
        )
        LastDocument.keep(found.uri, status_token.MEDIA_TYPE, text)
    rows = DefinitionFormat.objects.filter(tenant=tenant)
    for row in rows.select_related("definition__schema"):
        row.definition.sd_jwt = row
        body = json.dumps(metadata.type_metadata(row.definition))
        facts = facts_of(row, tenant) | {"issued": row.describe()}
        url = f"{issuer_url(tenant.pk)}/types/{row.definition_id}"
        LastDocument.keep(url, JSON, body, facts)
    jwk = signing.public_jwk_of(signer.secret)
    document = json.dumps(metadata.describe_key(tenant.pk, jwk))
    LastDocument.keep(metadata.key_url(tenant.pk), JSON, document)


def facts_of(row: DefinitionFormat, tenant: Tenant) -> dict[str, str]:
    schema = row.definition.schema
    return {
        "issuer": str(tenant.pk),
        "network": str(tenant.network_id),
        "format": row.format,
        "vct": row.type_id,
        "credentialDefinitionId": row.definition.definition_id,
        "schemaId": schema.schema_id,
        "schemaName": schema.name,
        "schemaVersion": schema.version,
    }


def find_thumbprints(tenant_ids: set[str]) -> dict[str, str]:
    """The thumbprints of the keys of deleted organizations, by their URI."""
    if not tenant_ids:
        return {}
    asked = Q()
    for tenant_id in tenant_ids:
        asked |= Q(path=metadata.key_url(UUID(tenant_id), base=""))
    documents = [json.loads(row.body) for row in LastDocument.objects.filter(asked)]
    return {one["issuer"]: one["jwks"]["keys"][0]["kid"] for one in documents}


def find_last_status(uri: str, index: bounded_json.JSON, now: float) -> int:
    """The status in the last list of a deleted organization. PeerError without one."""
    found = LastDocument.find(uri)
    if found is None or found.media_type != status_token.MEDIA_TYPE:
        raise status_token.bad_list("there is no such list")
    return status_token.parse_token(found.body, uri, now).status_of(index)
