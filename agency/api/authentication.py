"""Who calls the API: an organization, by its access token and its subscription key."""

from typing import NamedTuple

from django.conf import settings
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication

from agency.core.callers import remember_caller
from tenants.models import ApiKey, Provider, Tenant
from tenants.tokens import PREFIXES

SUBSCRIPTION_HEADERS = (
    "X-Service-Subscription-Key",
    "X-Streetcred-Subscription-Key",
    "X-Trinsic-Subscription-Key",
    "X-Scrd-Api-Key",
    "XStreetcredSubscriptionKey",
)
UNAUTHORIZED = (
    "The access token or the subscription key is missing, wrong or revoked. Send both as "
    "`Authorization: bearer <token>` and `X-Service-Subscription-Key: <key>`; the studio shows "
    "and renews them."
)

NO_KEY = (
    "No key came with the request. Send the access token as `Authorization: bearer <token>` and "
    "the subscription key as `X-Service-Subscription-Key: <key>`; the studio shows and renews them."
)
NO_TOKEN = (
    "The access token is missing. Send it as `Authorization: bearer <token>`, beside the "
    "subscription key; the studio shows and renews both."
)
NO_SUBSCRIPTION_KEY = (
    "The subscription key is missing. Send it as `X-Service-Subscription-Key: <key>`, beside "
    "`Authorization: bearer <token>`; the studio shows and renews both."
)
SWAPPED = (
    "The keys are swapped: the access token begins with agt_ and is sent as `Authorization: bearer "
    "<token>`, the subscription key begins with ags_ and is sent as "
    "`X-Service-Subscription-Key: <key>`."
)
PROVIDER_KEY = (
    "A provider key came where the access token belongs. It opens /provider/v1 only. Send the "
    "access token of an organization, which begins with agt_, as `Authorization: bearer <token>`."
)

NO_PROVIDER = (
    "The provider key is missing, wrong or revoked. It begins with agp_ and is sent as "
    "`Authorization: bearer <key>`; an access token does not open the provider API."
)


class Caller(NamedTuple):
    """Who calls: an organization, by one of its access tokens; `keys` are all that were sent."""

    tenant: Tenant
    token: ApiKey
    keys: tuple[ApiKey, ...]
    is_authenticated: bool = True


class TenantAuthentication(BaseAuthentication):
    """The access token, and the subscription key of the same organization.

    Below some prefixes (SUBSCRIPTION_KEY_OPTIONAL) the subscription key may be absent or empty:
    later clients never send one. One that is sent must be right. Every failure gets the same
    answer, but for what the caller can see in its own request.
    """

    def authenticate(self, request):
        secrets = {ApiKey.Kind.ACCESS_TOKEN: bearer(request)}
        subscription = subscription_key(request)
        if subscription:
            secrets[ApiKey.Kind.SUBSCRIPTION_KEY] = subscription
        elif not request.path_info.startswith(settings.SUBSCRIPTION_KEY_OPTIONAL):
            raise exceptions.AuthenticationFailed(mistake(bearer(request), ""))
        keys = ApiKey.find_each(secrets)
        if (
            set(keys) != set(secrets)
            or len({key.tenant_id for key in keys.values()}) > 1
        ):
            raise exceptions.AuthenticationFailed(
                mistake(bearer(request), subscription or None)
            )
        for key in keys.values():
            key.used()
        token = keys[ApiKey.Kind.ACCESS_TOKEN]
        remember_caller(request.headers["Authorization"], f"tenant {token.tenant_id}")
        return Caller(token.tenant, token, tuple(keys.values())), token

    def authenticate_header(self, request):
        return "Bearer"


def mistake(token, subscription):
    """What is wrong with these keys as far as their form tells, without a look into the database.

    subscription: None where it may be absent.
    """
    kinds = PREFIXES[ApiKey.Kind.ACCESS_TOKEN], PREFIXES[ApiKey.Kind.SUBSCRIPTION_KEY]
    if not token and not subscription:
        return NO_TOKEN if subscription is None else NO_KEY
    if token.startswith(f"{kinds[1]}_") or (subscription or "").startswith(
        f"{kinds[0]}_"
    ):
        return SWAPPED
    if token.startswith(f"{PREFIXES[ApiKey.Kind.PROVIDER_KEY]}_"):
        return PROVIDER_KEY
    if not token:
        return NO_TOKEN
    return NO_SUBSCRIPTION_KEY if subscription == "" else UNAUTHORIZED


class ProviderCaller(NamedTuple):
    """Who calls the provider API: a provider account, by one of its keys."""

    provider: Provider
    key: ApiKey
    is_authenticated: bool = True


class ProviderAuthentication(BaseAuthentication):
    """The provider key as the bearer; no other header counts."""

    def authenticate(self, request):
        key = ApiKey.find(ApiKey.Kind.PROVIDER_KEY, bearer(request))
        if not key:
            raise exceptions.AuthenticationFailed(NO_PROVIDER)
        key.used()
        remember_caller(request.headers["Authorization"], f"provider {key.provider_id}")
        return ProviderCaller(key.provider, key), key

    def authenticate_header(self, request):
        return "Bearer"


def bearer(request):
    """The token of the Authorization header; the scheme word may have any case or be missing."""
    words = request.headers.get("Authorization", "").split()
    if len(words) == 2 and words[0].lower() == "bearer":
        return words[1]
    return words[0] if len(words) == 1 else ""


def subscription_key(request):
    """The first that is not empty; programs send an empty header for a key they do not have."""
    sent = (request.headers.get(header, "").strip() for header in SUBSCRIPTION_HEADERS)
    return next(filter(None, sent), "")
