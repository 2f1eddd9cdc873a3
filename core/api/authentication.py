"""Authentication: an organization by its access token and subscription key, or a
provider account by its key."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from core.api.caller_cache import Caller, find_caller
from core.api.dialects import SUBSCRIPTION_HEADERS
from core.call import this_call
from core.net.callers import client_address, remember_caller
from tenants.models import ApiKey, Provider
from tenants.tokens import PREFIXES

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
SWAPPED_KEYS = (
    "The keys are swapped: the access token begins with agt_ and is sent as `Authorization: bearer "
    "<token>`, the subscription key begins with ags_ and is sent as "
    "`X-Service-Subscription-Key: <key>`."
)
UNEXPECTED_PROVIDER_KEY = (
    "A provider key came where the access token belongs. It opens /provider/v1 only. Send the "
    "access token of an organization, which begins with agt_, as `Authorization: bearer <token>`."
)

INVALID_PROVIDER_KEY = (
    "The provider key is missing, wrong or revoked. It begins with agp_ and is sent as "
    "`Authorization: bearer <key>`; an access token does not open the provider API."
)


class TenantAuthentication(BaseAuthentication):
    """The access token, and the subscription key of the same organization.

    Below some prefixes (SUBSCRIPTION_KEY_OPTIONAL) the subscription key may be absent
    or empty, as later clients never send one. A key that is sent must be valid. Every
    failure has the same response, but for mistakes that the caller can see in its own
    request.
    """

    def authenticate(self, request: HttpRequest) -> tuple[Caller, ApiKey]:
        """Return the Caller and its access token, as `request.user` and `request.auth`.

        401 for wrong keys, 503 `organization_frozen`.
        """
        token = bearer_token(request)
        secrets: dict[str, str] = {ApiKey.Kind.ACCESS_TOKEN: token}
        subscription = subscription_key(request)
        if subscription:
            secrets[ApiKey.Kind.SUBSCRIPTION_KEY] = subscription
        elif not request.path_info.startswith(settings.SUBSCRIPTION_KEY_OPTIONAL):
            raise exceptions.AuthenticationFailed(describe_mistake(token, ""))
        caller = find_caller(secrets)
        if not caller:
            raise exceptions.AuthenticationFailed(
                describe_mistake(token, subscription or None)
            )
        caller.tenant.require_thawed()
        address = client_address(request.META)
        for key in caller.keys:
            key.record_use(address)
        # Later requests with this token get this organization's share of threads.
        remember_caller(request.headers["Authorization"], f"tenant {caller.tenant.pk}")
        this_call.tenant_id = caller.tenant.pk
        return caller, caller.token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def describe_mistake(token: str, subscription: str | None) -> str:
    """What is wrong with these keys, as far as their form tells.

    The database is not asked, so the message discloses nothing about valid keys.
    subscription: None where it may be absent.
    """
    token_prefix = f"{PREFIXES[ApiKey.Kind.ACCESS_TOKEN]}_"
    subscription_prefix = f"{PREFIXES[ApiKey.Kind.SUBSCRIPTION_KEY]}_"
    provider_prefix = f"{PREFIXES[ApiKey.Kind.PROVIDER_KEY]}_"
    if not token and not subscription:
        return NO_TOKEN if subscription is None else NO_KEY
    if token.startswith(subscription_prefix):
        return SWAPPED_KEYS
    if subscription and subscription.startswith(token_prefix):
        return SWAPPED_KEYS
    if token.startswith(provider_prefix):
        return UNEXPECTED_PROVIDER_KEY
    if not token:
        return NO_TOKEN
    return NO_SUBSCRIPTION_KEY if subscription == "" else UNAUTHORIZED


class ProviderCaller(NamedTuple):
    """A provider account that calls the provider API with one of its keys."""

    provider: Provider
    key: ApiKey
    is_authenticated: bool = True


class ProviderAuthentication(BaseAuthentication):
    """The provider key as bearer token; no other header counts."""

    def authenticate(self, request: Request) -> tuple[ProviderCaller, ApiKey]:
        key = ApiKey.find_live(ApiKey.Kind.PROVIDER_KEY, bearer_token(request))
        if not key:
            raise exceptions.AuthenticationFailed(INVALID_PROVIDER_KEY)
        key.record_use(client_address(request.META))
        remember_caller(request.headers["Authorization"], f"provider {key.provider_id}")
        assert key.provider, "a provider key is an account's"
        return ProviderCaller(key.provider, key), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def bearer_token(request: HttpRequest) -> str:
    """The token of the Authorization header; the scheme word may have any case or be
    missing.
    """
    words = request.headers.get("Authorization", "").split()
    if len(words) == 2 and words[0].lower() == "bearer":
        return words[1]
    return words[0] if len(words) == 1 else ""


def subscription_key(request: HttpRequest) -> str:
    """The first that is not empty. Some clients send an empty header if they have no
    key.
    """
    sent = (request.headers.get(header, "").strip() for header in SUBSCRIPTION_HEADERS)
    return next(filter(None, sent), "")
