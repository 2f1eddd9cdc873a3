"""The endpoints of OpenID4VCI: wallets read and call them, without keys of ours.

Their errors have the shape of OAuth, `{"error", "error_description"}`.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.core.exceptions import TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from connections.models import Connection
from core.api.exceptions import set_retry_after
from core.errors import Conflict, NotFound, OrganizationFrozen, TooOften
from core.net.callers import client_address
from core.text import bounded_json
from core.text.bounded_json import JSON
from core.valkey import rate_limits
from credentials.models import (
    CredentialDefinition,
    Grant,
    LastDocument,
    TokenStatusList,
)
from credentials.openid4vci import issuing, metadata, proofs, status_lists, tokens
from credentials.openid4vci.errors import ProtocolError
from credentials.openid4vci.offers import find_offer
from tenants import vault
from tenants.models import Tenant
from tenants.models.organizations import organization_by_id
from wallets.jose import status_token

FORM = "application/x-www-form-urlencoded"
JWT = "application/jwt"
PUBLIC_FOR_A_MINUTE = "public, max-age=60"
# Requests in a minute, each as many at once.
OF_LINK = 60
OF_ADDRESS = 1200  # a class is one address
OF_UNKNOWN_LINKS = 60
OF_NONCES = 600
MAX_BODY = 64 * 1024

View = Callable[..., HttpResponse]


def endpoint(*methods: str, stays: bool = False) -> Callable[[View], View]:
    """A view `(request, tenant, …)` of an organization's OpenID4VCI.

    404 for an unknown organization, 405 for other methods; what the protocol refuses
    has its code. 429 and 503 say when to try again. stays: of a deleted organization
    the last document is served.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def respond(
            request: HttpRequest, tenantId: UUID, **named: str | int
        ) -> HttpResponse:
            if request.method not in methods:
                response = error_response(
                    "invalid_request", "Not at this address.", 405
                )
                response["Allow"] = ", ".join(methods)
                return response
            try:
                address = client_address(request.META)
                rate_limits.take_token("openid_address", address, OF_ADDRESS)
                tenant = organization_by_id.first(tenantId)
                if tenant is None:
                    return last_response(request) if stays else not_found()
                return view(request, tenant, **named)
            except ProtocolError as error:
                return refuse(error)
            except (TooOften, OrganizationFrozen) as error:
                code = "temporarily_unavailable"
                response = error_response(code, error.message, error.status)
                set_retry_after(response, error)
                return response
            except NotFound:  # the organization was deleted meanwhile
                return last_response(request) if stays else not_found()
            except Conflict as error:  # something else has just ended it
                return error_response("credential_request_denied", error.message, 400)

        return respond

    return decorate


def not_found() -> HttpResponse:
    raise Http404


def last_response(request: HttpRequest) -> HttpResponse:
    """What a deleted organization has left at this address."""
    found = LastDocument.find(request.path)
    if found is None:
        raise Http404
    response = HttpResponse(found.body, content_type=found.media_type)
    response["Cache-Control"] = PUBLIC_FOR_A_MINUTE
    return response


def refuse(error: ProtocolError) -> HttpResponse:
    response = error_response(error.code, error.description, error.status)
    if error.scheme:
        response["WWW-Authenticate"] = f'{error.scheme} error="{error.code}"'
    return response


def error_response(code: str, description: str, status: int) -> HttpResponse:
    body = {"error": code, "error_description": description}
    response = JsonResponse(body, status=status)
    response.error_code = code  # type: ignore[attr-defined]  # for the log of calls
    response._has_been_logged = True  # type: ignore[attr-defined]  # nothing is broken
    return response


def public_response(body: Any) -> HttpResponse:
    response = JsonResponse(body)
    response["Cache-Control"] = PUBLIC_FOR_A_MINUTE
    return response


def read_json(request: HttpRequest) -> JSON:
    if len(request.body) > MAX_BODY:
        raise ProtocolError("invalid_credential_request", "The body is too large.")
    if "access_token" in request.GET:
        raise ProtocolError(
            "invalid_request", "The access token belongs into the header."
        )
    try:
        return bounded_json.loads(request.body, unique_keys=True)
    except bounded_json.BadJSON as error:
        raise ProtocolError(
            "invalid_credential_request", f"The body is {error}."
        ) from None


def parse_form(request: HttpRequest, limit: int = MAX_BODY) -> dict[str, str]:
    """Return the parameters of a form of at most `limit` bytes."""
    if request.content_type != FORM or len(request.body) > limit:
        raise ProtocolError("invalid_request", f"Send a form, as {FORM}.")
    try:
        form = QueryDict(request.body)
    except TooManyFieldsSent:
        raise ProtocolError(
            "invalid_request", "The form has too many fields."
        ) from None
    if any(len(values) > 1 for _, values in form.lists()):
        raise ProtocolError("invalid_request", "A parameter is there twice.")
    return {name: str(form[name]) for name in form}


def find_grant(request: HttpRequest, tenant: Tenant, name: str) -> Grant:
    headers = request.headers
    found = tokens.find_grant(
        tenant, headers.get("Authorization"), headers.get("DPoP"), name
    )
    rate_limits.take_token("openid_link", str(found.pk), OF_LINK)
    return found


@endpoint("GET", "HEAD")
def issuer_metadata(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    if JWT in request.headers.get("Accept", ""):
        signed = metadata.sign_metadata(tenant, int(time.time()))
        response = HttpResponse(signed, content_type=JWT)
    else:
        response = JsonResponse(metadata.issuer_metadata(tenant))
    response["Cache-Control"] = PUBLIC_FOR_A_MINUTE
    response["Vary"] = "Accept"
    return response


@endpoint("GET", "HEAD")
def server_metadata(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    return public_response(metadata.server_metadata(tenant))


@endpoint("GET", "HEAD", stays=True)
def vc_issuer_metadata(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    return public_response(metadata.vc_issuer_metadata(tenant))


@endpoint("GET", "HEAD", stays=True)
def type_metadata(
    request: HttpRequest, tenant: Tenant, definitionId: UUID
) -> HttpResponse:
    # Also of a deleted definition: its credentials are still shown.
    rows = CredentialDefinition.objects.filter(tenant=tenant, pk=definitionId)
    definition = rows.select_related("schema").first()
    if definition is None or definition.sd_jwt is None:
        raise Http404
    return public_response(metadata.type_metadata(definition))


@endpoint("GET", "HEAD")
def show_offer(request: HttpRequest, tenant: Tenant, token: str) -> HttpResponse:
    """The offer in a link. 404 for an unknown one, 410 once it cannot be taken."""
    found = find_offer(tenant, token)
    if found is None:
        address = client_address(request.META)
        rate_limits.take_token("openid_unknown", address, OF_UNKNOWN_LINKS)
        return error_response("invalid_request", "There is no such offer.", 404)
    rate_limits.take_token("openid_link", str(found.connection_id), OF_LINK)
    connection = found.live_connection
    is_offered = found.state == found.State.OFFERED
    if (
        connection is None
        or not connection.is_open
        or connection.is_expired
        or not is_offered
    ):
        description = "The offer was used, withdrawn, or has expired."
        return error_response("invalid_request", description, 410)
    if request.method == "GET" and not connection.opened_at:
        rows = Connection.objects.filter(pk=connection.pk, opened_at=None)
        rows.update(opened_at=timezone.now())
    return JsonResponse(vault.unseal(found, "offer_body"))


@endpoint("POST")
def token(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    form, dpop = parse_form(request), request.headers.get("DPoP")
    grant = tokens.find_code(tenant, form)
    if grant is None:
        address = client_address(request.META)
        rate_limits.take_token("openid_unknown", address, OF_UNKNOWN_LINKS)
    else:
        rate_limits.take_token("openid_link", str(grant.pk), OF_LINK)
    return JsonResponse(tokens.redeem_code(tenant, grant, form, dpop))


@endpoint("POST")
def nonce(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    address = client_address(request.META)
    rate_limits.take_token("openid_nonce", address, OF_NONCES)
    return JsonResponse({"c_nonce": proofs.make_nonce(tenant)})


@endpoint("POST")
def credential(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    body = read_json(request)
    grant = find_grant(request, tenant, "credential")
    status, answer = issuing.answer_request(tenant, grant, body)
    return JsonResponse(answer, status=status)


@endpoint("POST")
def deferred_credential(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    body = read_json(request)
    grant = find_grant(request, tenant, "deferred_credential")
    status, answer = issuing.answer_deferred(grant, body)
    return JsonResponse(answer, status=status)


@endpoint("POST")
def notification(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    body = read_json(request)
    grant = find_grant(request, tenant, "notification")
    issuing.take_notification(grant, body)
    return HttpResponse(status=204)


@endpoint("GET", "HEAD", stays=True)
def status_list(request: HttpRequest, tenant: Tenant, number: int) -> HttpResponse:
    found = TokenStatusList.objects.filter(tenant=tenant, number=number).first()
    if found is None:
        raise Http404
    text = status_lists.sign_list(found, tenant)
    response = HttpResponse(text, content_type=status_token.MEDIA_TYPE)
    # Not longer: DELETE has returned, so whoever reads it must learn what it did.
    response["Cache-Control"] = "public, no-cache"
    return response
