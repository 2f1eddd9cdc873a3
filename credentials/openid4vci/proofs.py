"""What a wallet proves with each request: that it has a key, now.

A nonce is sealed text, so nothing is stored of one that is not used.
"""

import time
from typing import Any, NamedTuple

from core.errors import PeerError
from core.text.bounded_json import JSON
from credentials.models import SpentNonce
from credentials.openid4vci.errors import ProtocolError
from tenants import vault
from tenants.models import Tenant
from wallets.jose import signing
from wallets.jose.signing import JWK
from wallets.models import issuer_url

PROOF_TYP = "openid4vci-proof+jwt"
DPOP_TYP = "dpop+jwt"
NONCE_PURPOSE = "c_nonce"
NONCE_SECONDS = 300
# The nonce says how old a proof is: clocks of phones are often wrong.
PROOF_SECONDS = 3600
DPOP_SECONDS = 300
MAX_PROOF = 16 * 1024  # characters
MAX_JTI = 256


class Proof(NamedTuple):
    """A key of the holder, and the digest of the nonce that proves it."""

    jwk: JWK
    nonce_digest: str

    @property
    def thumbprint(self) -> str:
        return signing.thumbprint_of(self.jwk)


def make_nonce(tenant: Tenant) -> str:
    return vault.seal_text([str(tenant.pk), int(time.time())], NONCE_PURPOSE)


def read_proof(text: JSON, tenant: Tenant) -> Proof:
    """Check a proof (OpenID4VCI 1.0 appendix F.1), but for what was used before.

    ProtocolError `invalid_proof`, `invalid_nonce`.
    """
    try:
        token = signing.read_token(text, PROOF_TYP, MAX_PROOF)
        header, payload = token.header, token.payload
        if len(header.keys() & {"jwk", "kid", "x5c", "trust_chain"}) != 1:
            raise _invalid_proof("it must name its key once")
        jwk = _verify_by_jwk(token)
    except PeerError as error:
        raise _invalid_proof(error.message) from None
    if payload.get("aud") != issuer_url(tenant.pk):
        raise _invalid_proof("its aud must be the credential issuer")
    made_at = payload.get("iat")
    if not signing.is_time(made_at) or abs(time.time() - made_at) > PROOF_SECONDS:
        raise _invalid_proof("its iat must be the time at which it was made")
    if "nonce" not in payload:
        raise _invalid_proof("it needs a nonce of the nonce endpoint")
    return Proof(jwk, _check_nonce(payload["nonce"], tenant))


def _verify_by_jwk(token: signing.Token) -> JWK:
    """Verify a token by the key in its header, which is returned. PeerError."""
    key = signing.read_public_key(token.header.get("jwk"))
    token.verify(key)
    return signing.jwk_of(key)


def _check_nonce(nonce: Any, tenant: Tenant) -> str:
    """Return the digest of a nonce that was made here, for this organization, lately."""
    invalid = ProtocolError(
        "invalid_nonce", "The nonce has expired: ask for a new one."
    )
    try:
        # The same bytes in another spelling would be another nonce.
        digest = signing.sha256_of(signing.decode_base64url(nonce))
    except PeerError:
        raise invalid from None
    opened = vault.unseal_text(nonce, NONCE_PURPOSE)
    if opened is None:
        raise invalid
    tenant_id, made_at = opened
    is_fresh = time.time() - made_at <= NONCE_SECONDS
    if tenant_id != str(tenant.pk) or not is_fresh:
        raise invalid
    return digest


def spend_nonce(proof: Proof) -> None:
    """Use up the nonce, in the caller's transaction. ProtocolError `invalid_nonce`."""
    if not SpentNonce.spend(proof.nonce_digest, NONCE_SECONDS):
        raise ProtocolError("invalid_nonce", "The nonce was used: ask for a new one.")


def read_dpop(text: str | None, url: str, access_token: str = "") -> str:
    """Check the header `DPoP` of a POST request (RFC 9449), and use it up.

    Return the thumbprint of its key; "" without the header. access_token: with which
    it comes. ProtocolError `invalid_dpop_proof`.
    """
    if text is None:
        return ""
    try:
        token = signing.read_token(text, DPOP_TYP, MAX_PROOF)
        thumbprint = signing.thumbprint_of(_verify_by_jwk(token))
    except PeerError as error:
        raise _invalid_dpop(error.message) from None
    said = token.payload
    made_at, jti = said.get("iat"), said.get("jti")
    if said.get("htm") != "POST" or said.get("htu") != url:
        raise _invalid_dpop("it is for another request")
    if not signing.is_time(made_at) or abs(time.time() - made_at) > DPOP_SECONDS:
        raise _invalid_dpop("its iat must be the time at which it was made")
    if access_token and said.get("ath") != signing.sha256_of(access_token):
        raise _invalid_dpop("it is for another access token")
    if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_JTI:
        raise _invalid_dpop("it needs a jti")
    digest = signing.sha256_of(f"{thumbprint} {jti}")
    if not SpentNonce.spend(digest, 2 * DPOP_SECONDS):
        raise _invalid_dpop("it was used before")
    return thumbprint


def _invalid_proof(why: str) -> ProtocolError:
    return ProtocolError("invalid_proof", f"The proof is not accepted: {why}.")


def _invalid_dpop(why: str) -> ProtocolError:
    return ProtocolError("invalid_dpop_proof", f"The DPoP proof is not valid: {why}.")
