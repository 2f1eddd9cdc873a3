"""The endpoints of OpenID4VP: wallets read requests and post answers."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from connections.models import Connection
from core.net.callers import client_address
from core.valkey import rate_limits
from credentials.api.openid4vci import (
    FORM,
    OF_LINK,
    OF_UNKNOWN_LINKS,
    endpoint,
    error_response,
    parse_form,
)
from credentials.openid4vci.errors import ProtocolError
from tenants.models import Tenant
from verifications.models import Verification
from verifications.openid4vp import answers
from verifications.openid4vp.requests import TYP, find_request, sign_request
from wallets.jose.encryption import MAX_ENCRYPTED

MEDIA_TYPE = f"application/{TYP}"
MAX_WALLET_NONCE = 500
# Of a form: the answer, percent-encoded where it must be, and a state.
MAX_ANSWER = MAX_ENCRYPTED + 4096


def find_by_link(request: HttpRequest, tenant: Tenant, token: str) -> Verification:
    found = find_request(tenant, token)
    if found is None:
        address = client_address(request.META)
        rate_limits.take_token("openid_unknown", address, OF_UNKNOWN_LINKS)
        raise ProtocolError("invalid_request", "There is no such request.", 404)
    rate_limits.take_token("openid_link", str(found.connection_id), OF_LINK)
    found.tenant.require_thawed()
    return found


@endpoint("GET", "HEAD", "POST")
def show_request(request: HttpRequest, tenant: Tenant, token: str) -> HttpResponse:
    """The request object of a link. 404 for an unknown one, 410 once it has ended."""
    found = find_by_link(request, tenant, token)
    connection = found.live_connection
    is_requested = found.state == Verification.State.REQUESTED
    is_asked = is_requested and found.presentation is None
    if connection is None or connection.is_expired or not is_asked:
        description = "The request was answered or withdrawn, or has expired."
        return error_response("invalid_request", description, 410)
    wallet_nonce = None
    if request.method == "POST" and request.content_type == FORM:
        wallet_nonce = parse_form(request).get("wallet_nonce")
    if wallet_nonce is not None and len(wallet_nonce) > MAX_WALLET_NONCE:
        raise ProtocolError("invalid_request", "The wallet_nonce is too long.")
    if request.method != "HEAD" and not connection.opened_at:
        rows = Connection.objects.filter(pk=connection.pk, opened_at=None)
        rows.update(opened_at=timezone.now())
    response = HttpResponse(sign_request(found, wallet_nonce), content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-store"
    return response


@endpoint("POST")
def take_answer(request: HttpRequest, tenant: Tenant, token: str) -> HttpResponse:
    """The answer of a wallet. It is told that it has come, and nothing of the verdict."""
    found = find_by_link(request, tenant, token)
    answers.receive_answer(found, parse_form(request, MAX_ANSWER))
    response = JsonResponse({})
    response["Cache-Control"] = "no-store"
    return response
