"""Requests to wallets of OpenID4VP: a link, and the request object behind it.

Each request has a nonce, a state and a key of its own, to which its answer is encrypted.
"""

import secrets
from functools import partial
from urllib.parse import urlencode
from uuid import UUID, uuid4

from connections.didcomm.formats import HLINDY, MessageFormat
from connections.exchange import Exchange
from connections.protocols import connectionless
from core.database.compiled_sql import CompiledQuery
from core.text.bounded_json import JSON
from core.work import network_reads, transactions
from credentials.models import CredentialFormat
from tenants import vault
from tenants.models import Notes, Tenant
from verifications.models import Verification
from verifications.openid4vp import queries
from verifications.openid4vp.queries import Query
from verifications.openid4vp.sources import find_sources
from verifications.proofs.policy import Policy
from verifications.twins import with_twins
from wallets.jose import certificates, encryption, signing
from wallets.models import SigningKey, Wallet, issuer_url

OPENID4VP = "openid4vp"
TYP = "oauth-authz-req+jwt"
AUDIENCE = "https://self-issued.me/v2"  # of a request to a wallet that is not known
KEY_ID = "answer"
FORMATS: dict[str, JSON] = {
    queries.FORMAT: {"sd-jwt_alg_values": ["ES256"], "kb-jwt_alg_values": ["ES256"]}
}


@transactions.atomic()
def send_request_by_link(
    wallet: Wallet,
    policy: Policy,
    policy_id: UUID | None = None,
    notes: Notes | None = None,
) -> Verification:
    """Create a proof request as a link for wallets that hold SD-JWT VCs.

    The first wallet that answers it decides. 400 `not_yet_due`, 409 `not_provable`,
    `quota_exceeded`.
    """
    tenant = wallet.tenant
    policy = with_twins(policy.resolve_dates(network_reads.now()), tenant.pk)
    policy.non_revoked_at(network_reads.now())  # refuses a time to come
    found = compile_policy(tenant, policy)
    key = SigningKey.of(tenant, SigningKey.Purpose.REQUESTS)
    client_id = client_id_of(key)
    connection = connectionless.create_link(
        wallet, wallet_link=partial(link_of, tenant, client_id)
    )
    verification = Verification.build(
        connection=connection,
        role=Verification.Role.VERIFIER,
        thread_id=str(uuid4()),
        message_format=MessageFormat("", "1.0", HLINDY),
        policy=policy,
        proof_request={"queries": [one.to_json() for one in found]},
    )
    verification.format = CredentialFormat.SD_JWT
    verification.policy_id = policy_id
    verification.set_notes(notes)
    answer_key = {
        "secret": signing.encode_base64url(signing.generate_secret()),
        "nonce": secrets.token_urlsafe(32),
        "state": secrets.token_urlsafe(16),
        "client_id": client_id,
        # Also after other certificates were uploaded: wallets compare the hash.
        "x5c": key.x5c,
    }
    vault.seal(verification, "answer_key", answer_key)
    verification.insert_within_quota()
    return verification


def compile_policy(tenant: Tenant, policy: Policy) -> list[Query]:
    """Return the queries of a policy of today. 409 `not_provable`."""
    policy = with_twins(policy.resolve_dates(network_reads.now()), tenant.pk)
    return queries.compile_queries(policy, partial(find_sources, tenant))


def client_id_of(key: SigningKey) -> str:
    """How a wallet knows the verifier: by the hash of its certificate."""
    [leaf, *_] = certificates.read_chain(key.x5c)
    return f"x509_hash:{certificates.hash_of(leaf)}"


def link_of(tenant: Tenant, client_id: str, token: str) -> str:
    address = f"{issuer_url(tenant.pk)}/requests/{token}"
    query = {
        "client_id": client_id,
        "request_uri": address,
        "request_uri_method": "post",
    }
    return f"openid4vp://?{urlencode(query)}"


def find_request(tenant: Tenant, token: str) -> Verification | None:
    """The verification behind a link of the organization, whatever its state."""
    return _request_behind_link.first(tenant.pk, token)


_request_behind_link = CompiledQuery(
    lambda tenant_id, token: Verification.objects.filter(
        Exchange.behind_link(token),
        tenant=tenant_id,
        format=CredentialFormat.SD_JWT,
        role=Verification.Role.VERIFIER,
    ).select_related("connection__my_key", "wallet", "tenant__network"),
    UUID,
    str,
)


def queries_of(verification: Verification) -> list[Query]:
    """What it asks for. Decrypts in each call."""
    body = vault.unseal(verification, "request_body")
    return [Query.from_json(one) for one in body["queries"]]


def sign_request(verification: Verification, wallet_nonce: str | None) -> str:
    """Return the request object (OpenID4VP section 5), which may be read repeatedly.

    wallet_nonce: of a wallet that gives one, to know that the answer is fresh.
    """
    tenant = verification.tenant
    answer_key = vault.unseal(verification, "answer_key")
    connection = verification.require_connection()
    secret = signing.decode_base64url(answer_key["secret"])
    jwk: dict[str, JSON] = {
        **signing.public_jwk_of(secret),
        "use": "enc",
        "alg": "ECDH-ES",
        "kid": KEY_ID,
    }
    request: dict[str, JSON] = {
        "client_id": answer_key["client_id"],
        "response_type": "vp_token",
        "response_mode": "direct_post.jwt",
        "response_uri": f"{issuer_url(tenant.pk)}/responses/{connection.token}",
        "nonce": answer_key["nonce"],
        "state": answer_key["state"],
        "aud": AUDIENCE,
        "dcql_query": queries.write_dcql(queries_of(verification)),
        "client_metadata": {
            "client_name": tenant.name,
            "jwks": {"keys": [jwk]},
            "encrypted_response_enc_values_supported": list(encryption.ENCODINGS),
            "vp_formats_supported": FORMATS,
        },
    }
    if wallet_nonce is not None:
        request["wallet_nonce"] = wallet_nonce
    key = SigningKey.of(tenant, SigningKey.Purpose.REQUESTS)
    return signing.sign_token(request, key.unseal_secret(), TYP, x5c=answer_key["x5c"])
