"""The two dialects of the API: which one a request has, and how responses differ.

A request with the header of the published interface gets its literal shapes. Every
other request gets the shapes that the original clients read. All else is a superset of
both. A webhook keeps the dialect of the request that registered it, which decides
the types of events that it gets by default (webhooks/delivery/endpoints.py).
"""

from typing import TypedDict

from django.http import HttpRequest

LITERAL_HEADER = "X-Service-Subscription-Key"
SUBSCRIPTION_HEADERS = (
    LITERAL_HEADER,
    "X-Streetcred-Subscription-Key",
    "X-Trinsic-Subscription-Key",
    "X-Scrd-Api-Key",
    "XStreetcredSubscriptionKey",
)
WALLET_PREFIXES = ("/custodian/", "/wallet/v1/")
# The OpenAPI document describes requests with the header. How every other request
# differs, by the schema of the document.
DIFFERENCES = {
    "AgentEndpoint": "`endpoint.verkey` is an array that holds the key",
    "AvailableCredentials": "the answer is one flat array, without `restrictions`",
    "WebhookParameters": "an empty `messageTypes` also stands for `credential_offer` "
    "and `verification_request`",
}


class AvailableCredentials(TypedDict):
    attributes: list[dict[str, object]]
    predicates: list[dict[str, object]]


def is_literal(request: HttpRequest) -> bool:
    return LITERAL_HEADER in request.headers


def is_original(request: HttpRequest) -> bool:
    """Whether an original client has sent it, as its path or a header shows."""
    has_header = any(header in request.headers for header in SUBSCRIPTION_HEADERS)
    return has_header or not is_bare(request)


def is_under_prefix(request: HttpRequest) -> bool:
    """Return whether the path has a prefix, as the original clients write it."""
    return request.path.startswith(("/agency/v1/", "/credentials/v1/"))


def is_bare(request: HttpRequest) -> bool:
    """Return whether the path has no prefix: the original clients write one."""
    return not is_under_prefix(request) and not is_wallet_prefix(request)


def is_wallet_prefix(request: HttpRequest) -> bool:
    """Return whether the path has a prefix of the original clients of wallets, for
    which a 401 or 403 is a success.
    """
    return request.path.startswith(WALLET_PREFIXES)


def endpoint_verkey(request: HttpRequest, key: str | None) -> str | list[str] | None:
    """`endpoint.verkey`: a string in the interface, an array for the clients."""
    if not key:
        return None
    return key if is_literal(request) else [key]


def available_credentials(
    request: HttpRequest,
    attributes: list[dict[str, object]],
    predicates: list[dict[str, object]],
) -> AvailableCredentials | list[dict[str, object]]:
    """`{attributes, predicates}` with restrictions in the interface, one flat array
    for clients.
    """
    if is_literal(request):
        return {"attributes": attributes, "predicates": predicates}
    return [
        {name: value for name, value in item.items() if name != "restrictions"}
        for item in attributes + predicates
    ]
