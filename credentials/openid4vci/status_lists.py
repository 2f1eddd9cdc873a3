"""The status list that everybody reads: signed when it is asked for."""

import time

from django.core.cache import cache

from credentials.models import TokenStatusList
from tenants.models import Tenant
from wallets.jose import status_token
from wallets.models import SigningKey

TTL_SECONDS = 300  # for which a reader may keep it
VALID_SECONDS = 24 * 3600
SIGN_AGAIN_SECONDS = 600


def sign_list(found: TokenStatusList, tenant: Tenant) -> str:
    """The list as a token. It is kept until a bit changes, for SIGN_AGAIN_SECONDS."""
    now = int(time.time())
    period = now // SIGN_AGAIN_SECONDS
    name = f"status-list:{found.pk}:{found.version}:{period}"
    if signed := cache.get(name):
        return str(signed)
    # Wallets on npm's sd-jwt-js (Credo) verify it with the key of the credential.
    key = SigningKey.of(tenant, SigningKey.Purpose.CREDENTIALS)
    issued_at = period * SIGN_AGAIN_SECONDS
    times = {"iat": issued_at, "exp": issued_at + VALID_SECONDS, "ttl": TTL_SECONDS}
    signed = status_token.make_token(
        bytes(found.bits), found.uri, times, key.unseal_secret(), key.x5c
    )
    cache.set(name, signed, SIGN_AGAIN_SECONDS)
    return signed
